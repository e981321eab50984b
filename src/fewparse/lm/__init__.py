"""Language models: one protocol, and every way to answer it."""
