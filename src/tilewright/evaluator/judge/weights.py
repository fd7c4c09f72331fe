"""Weights: drawn anew after construction, so that what was folded or skipped at init shows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

MAX_WEIGHT_NAMES = 8
"""Number of a runner's weights that the judge compares with each of its own weights that has
another name in the runner."""


def resample(model: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Return new values for every floating-point parameter and running statistic of `model`.

    Scale and mean stay, so the model stays as well-conditioned as it was. Constants (zero bias,
    unit gain, fresh statistics) become visibly non-constant.
    """
    device = next((value.device for _, value in _resampled(model)), torch.device("cpu"))
    generator = torch.Generator(device).manual_seed(seed)
    state: dict[str, torch.Tensor] = {}
    for name, value in _resampled(model):
        noise = torch.randn(value.shape, generator=generator, device=device)
        spread = float(value.float().std()) if value.numel() > 1 else 0.0
        mean = float(value.float().mean()) if value.numel() else 0.0
        if name.endswith("running_var"):
            fresh = 0.5 + torch.rand(value.shape, generator=generator, device=device)
        elif spread < 1e-12:
            fresh = mean + noise * 0.25 * max(abs(mean), 0.4)
        else:
            fresh = mean + noise * spread
        state[name] = fresh.to(value.dtype)
    return state


def is_constant(value: torch.Tensor) -> bool:
    """Tell whether all elements are equal: a default that makes its operation a no-op."""
    return value.numel() == 0 or bool((value == value.reshape(-1)[0]).all())


def named_alike(fresh: dict[str, torch.Tensor], entries: list[list[Any]]) -> dict[str, str]:
    """Map the runner's names to the judge's where names and shapes agree."""
    shapes = {name: tuple(shape) for name, shape, _ in entries}
    return {name: name for name, value in fresh.items() if shapes.get(name) == tuple(value.shape)}


def valued_alike(value: torch.Tensor, seeded: dict[str, torch.Tensor]) -> str | None:
    """Return the first of our seeded weights that has these values: any of them will do."""
    return next((name for name, ours in seeded.items() if torch.equal(value, ours)), None)


def unmatched(fresh: dict[str, torch.Tensor], entries: list[list[Any]]) -> list[str]:
    """Return the runner's names that may hold an unmatched weight by shape, some for each."""
    shapes = {name: tuple(shape) for name, shape, _ in entries}
    missing = Counter(tuple(v.shape) for n, v in fresh.items() if shapes.get(n) != tuple(v.shape))
    capacity = Counter({shape: MAX_WEIGHT_NAMES * count for shape, count in missing.items()})
    found = []
    for name, shape in shapes.items():
        if name not in fresh and capacity[shape]:
            capacity[shape] -= 1
            found.append(name)
    return found


def _resampled(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    parameters = [(n, p.detach()) for n, p in model.named_parameters() if p.is_floating_point()]
    statistics = [
        (name, value)
        for name, value in model.named_buffers()
        if name.split(".")[-1] in ("running_mean", "running_var")
    ]
    return parameters + statistics
