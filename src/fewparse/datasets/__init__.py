"""Benchmark datasets: downloaded or imported once, and stored in the data folder in one normal form."""
