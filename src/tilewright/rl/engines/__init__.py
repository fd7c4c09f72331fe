"""Trainers that we plug into, each in a package of its own, imported when it is asked for."""
