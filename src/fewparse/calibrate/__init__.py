"""Calibrate the confidence of a domain on its own examples, parsed by models that have not learned them."""
