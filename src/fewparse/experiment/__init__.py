"""Experiments: a grid of settings, run on the items of several domains, with statistics and reports."""
