"""Overnight: the dataset, and an executor of its programs over the worlds of its eight domains."""
