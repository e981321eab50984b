"""Choose examples: which of the pool come into the prompt, and in which order."""
