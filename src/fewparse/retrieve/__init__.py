"""Retrieval: which examples of the pool the prompt contains, and in which order."""
