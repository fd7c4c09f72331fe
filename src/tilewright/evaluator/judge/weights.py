"""Weights: drawn anew after construction, so that what was folded or skipped at init shows."""

from __future__ import annotations

from typing import Any

import torch


def redraw(model: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Return new values for every floating-point parameter and running statistic of `model`.

    Scale and mean stay those of the initialisation, so the model stays as well-conditioned as
    it was; constants (zero bias, unit gain, fresh statistics) become visibly non-constant.
    """
    device = next((value.device for _, value in _redrawn(model)), torch.device("cpu"))
    generator = torch.Generator(device).manual_seed(seed)
    state: dict[str, torch.Tensor] = {}
    for name, value in _redrawn(model):
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


def match(
    fresh: dict[str, torch.Tensor],
    entries: list[list[Any]],
    same: dict[str, set[str]],
) -> dict[str, str]:
    """Map the contestant's names to ours: by name and shape, then by equal seeded values.

    `entries` are the contestant's (name, shape, dtype); `same` says of its names that did not
    match, where their tensors have been read, which of ours are seeded alike.
    """
    shapes = {name: tuple(shape) for name, shape, _ in entries}
    mapping = {
        name: name for name, value in fresh.items() if shapes.get(name) == tuple(value.shape)
    }
    taken = set(mapping)
    for ours in fresh:
        if ours in mapping.values():
            continue
        for theirs, found in same.items():
            if theirs not in taken and ours in found:
                mapping[theirs] = ours
                taken.add(theirs)
                break
    return mapping


def alike(value: torch.Tensor, seeded: dict[str, torch.Tensor]) -> set[str]:
    """Return which of our seeded weights have these values."""
    return {name for name, ours in seeded.items() if torch.equal(value, ours)}


def unmatched(fresh: dict[str, torch.Tensor], entries: list[list[Any]]) -> list[str]:
    """Return the contestant's names that could hold one of our unmatched weights, by shape."""
    shapes = {name: tuple(shape) for name, shape, _ in entries}
    missing = [v.shape for n, v in fresh.items() if shapes.get(n) != tuple(v.shape)]
    known = set(fresh)
    return [n for n, shape in shapes.items() if n not in known and torch.Size(shape) in missing]


def _redrawn(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    parameters = [(n, p.detach()) for n, p in model.named_parameters() if p.is_floating_point()]
    statistics = [
        (name, value)
        for name, value in model.named_buffers()
        if name.split(".")[-1] in ("running_mean", "running_var")
    ]
    return parameters + statistics
