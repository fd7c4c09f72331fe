"""Bars of training data, and of training on a CPU."""
