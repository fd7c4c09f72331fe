"""Families of programs: problems, and many programs for each of them, generated from slots."""
