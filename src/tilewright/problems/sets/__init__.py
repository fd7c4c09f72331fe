"""Benchmarks as sets of problems: one file each, an entry point each."""
