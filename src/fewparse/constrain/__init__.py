"""Constraints: exactly which bytes or tokens may follow a prefix (nextTokens in the paper)."""
