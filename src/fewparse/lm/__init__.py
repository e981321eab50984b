"""Language models: one protocol and its implementations, in this process and over HTTP."""
