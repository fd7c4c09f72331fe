"""Loaders, one for each kind of candidate; the runner process calls them."""
