"""Choose the settings of a domain by cross-validation on its training examples."""
