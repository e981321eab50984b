"""Confidence: is a parse right, should it be executed, and what did the user say."""
