"""Grammars: what the strings of a language look like, with no thought of models."""
