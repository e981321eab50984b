"""SQL domains: a grammar, canonical English and execution from the schema of a database."""
