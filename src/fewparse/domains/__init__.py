"""Domains: folders with settings, examples, a grammar and an executor, and the bundled ones."""
