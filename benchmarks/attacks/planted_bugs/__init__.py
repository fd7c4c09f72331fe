"""Bugs planted in the judge one at a time, each of which a test must find."""
