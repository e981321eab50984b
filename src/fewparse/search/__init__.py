"""Decoding: a prompt, a language model and a constraint in; finished hypotheses, best first, out."""
