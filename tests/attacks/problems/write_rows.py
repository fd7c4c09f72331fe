"""A matrix in which a few rows are replaced."""

import torch

ENTRY = "write_rows"
CASES = [{"name": "main", "rows": 2048, "cols": 1024, "new": 16}]


def inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    rows = torch.randn(case["new"], case["cols"], generator=generator)
    places = torch.randperm(case["rows"], generator=generator)[: case["new"]]
    return x, rows, places


def reference(x, rows, places):
    return x.index_copy(0, places, rows)
