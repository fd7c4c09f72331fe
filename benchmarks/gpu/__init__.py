"""Bars and experiments on a GPU; `python -m benchmarks.gpu PART` runs a bar."""
