"""Strategies of a search: pure, and found as entry points of `tilewright.strategies`."""
