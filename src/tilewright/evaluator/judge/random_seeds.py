"""The random generators that problem code may use, and their seeds."""

from __future__ import annotations

import torch


def seed_generators(device: torch.device, seed: int) -> None:
    """Seed as `torch.manual_seed` does; that one formats a stack for a device that is not there."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


def has_sampled(device: torch.device, seed: int) -> bool:
    """Tell whether torch's generators were used since they got `seed`, and seed them anew."""
    left = _states(device)
    seed_generators(device, seed)
    return any(not torch.equal(a, b) for a, b in zip(left, _states(device), strict=True))


def _states(device: torch.device) -> list[torch.Tensor]:
    on_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.default_generator.get_state(), *on_gpu]
