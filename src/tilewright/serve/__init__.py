"""Doors for other programs: tools for coding agents."""
