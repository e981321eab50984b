"""Decode: search for the best well-formed outputs, seeing models and constraints only as protocols."""
