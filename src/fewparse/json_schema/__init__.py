"""JSON Schema: read schemas, validate JSON texts and write them in one canonical form."""
