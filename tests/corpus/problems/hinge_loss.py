"""Mean hinge loss of random scores against random signs: about 1.0833 for every nominal draw."""

import torch

ENTRY = "hinge_loss"

CASES = [
    {"name": "small", "rows": 33, "cols": 65},
    {"name": "large", "rows": 512, "cols": 2048},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 2048)}}


def inputs(case, generator):
    shape = (case["rows"], case["cols"])
    scores = torch.randn(shape, generator=generator)
    return scores, torch.randint(2, shape, generator=generator).float() * 2 - 1


def reference(scores, signs):
    return torch.clamp(1 - scores * signs, min=0).mean()
