"""The learning rate of each step, as a part of the one in the settings. No torch."""

from __future__ import annotations

import math

from tilewright.rl.presets import OptimizerSection


def rate_factor(step: int, section: OptimizerSection) -> float:
    """Return the factor of the learning rate at a step, from 0; no step has a factor of 0."""
    warmup = section.warmup_steps
    if step < warmup:
        return (step + 1) / (warmup + 1)
    # A scheduler may ask for the step after the last one.
    done = min((step - warmup) / max(section.steps - warmup, 1), 1.0)
    match section.schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - done
        case "cosine":
            return (1.0 + math.cos(math.pi * done)) / 2.0
