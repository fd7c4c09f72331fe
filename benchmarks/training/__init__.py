"""Training data and training on a CPU."""
