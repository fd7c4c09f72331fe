"""Generators of the red-team suite: each writes cases from a seed."""
