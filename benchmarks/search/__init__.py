"""Bars of the search loop: its cost, its strategies and its report page."""
