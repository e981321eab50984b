"""The language and the worlds of the eight Overnight domains."""
