"""Benchmark datasets: download or import them, and store them in the data folder in one normal form."""
