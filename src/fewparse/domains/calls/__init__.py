"""Domains whose programs are function calls: declarations from several sources, notations, execution."""
