"""Interfaces for other programs: the HTTP server, and tools for coding agents."""
