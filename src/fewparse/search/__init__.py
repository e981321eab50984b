"""Decoding: search for the best outputs of a language model under a constraint."""
