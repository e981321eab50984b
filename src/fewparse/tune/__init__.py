"""Tuning: train a LoRA adapter for the embedded model on a domain's examples."""
