"""Rows of a table are looked up by number and summed, a bag of them for each output row."""

import torch

ENTRY = "embedding_sum"

CASES = [
    {"name": "tiny", "entries": 11, "bags": 3, "bag": 5, "width": 7},
    {"name": "medium", "entries": 500, "bags": 129, "bag": 9, "width": 100},
    {"name": "large", "entries": 4000, "bags": 512, "bag": 32, "width": 128},
]

VARY = {
    "sizes": {"entries": (1, 2000), "bags": (1, 300), "bag": (1, 40), "width": (1, 200)},
}


def inputs(case, generator):
    shape = (case["bags"], case["bag"])
    indices = torch.randint(case["entries"], shape, generator=generator)
    return indices, torch.randn(case["entries"], case["width"], generator=generator)


def reference(indices, table):
    return table[indices].sum(dim=1)


def BYTES(case):
    lookups, entries = case["bags"] * case["bag"], case["entries"]
    # A row that is met twice is read once; this many are expected to be met.
    touched = entries * (1 - (1 - 1 / entries) ** lookups)
    return 8 * lookups + 4 * case["width"] * (round(touched) + case["bags"])


def FLOPS(case):
    return case["bags"] * case["bag"] * case["width"]
