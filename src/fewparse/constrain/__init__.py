"""Constraints: which bytes or tokens may follow a prefix (nextTokens of the paper), exactly."""
