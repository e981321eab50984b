"""How good is it: run systems over held-out examples, and say how right and how dear they were."""
