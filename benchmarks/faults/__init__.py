"""Faults, kills and bad input: the verdict is right and nothing is left behind."""
