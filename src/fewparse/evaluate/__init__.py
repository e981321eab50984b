"""Evaluation: run systems on held-out examples, and report accuracy, cost and speed."""
