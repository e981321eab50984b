"""Benchmark datasets: fetched or imported once, kept in the user's data folder in one normal form."""
