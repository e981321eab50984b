"""Tuning: a domain's examples in; a LoRA adapter for the embedded model out."""
