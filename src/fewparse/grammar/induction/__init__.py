"""induction."""
