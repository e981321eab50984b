"""Retrieval: which examples of the pool come into the prompt, and in which order."""
