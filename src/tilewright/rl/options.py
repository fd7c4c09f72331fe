"""The choices that an estimator leaves open, by name. No torch: settings are read without it."""

from __future__ import annotations

from typing import Literal

__all__ = [
    "Aggregation",
    "Denominator",
    "Estimator",
    "Level",
    "Mean",
    "ProfilingMode",
    "Singleton",
    "Spread",
    "Unjudged",
]

Estimator = Literal["trloo", "grpo", "rloo", "reinforce"]
"""From returns to advantages. `trloo` and `grpo` compare turns of one prompt and one place,
`rloo` whole trajectories of one prompt, `reinforce` nothing."""

Singleton = Literal["return", "zero", "none"]
"""The advantage of a turn that is alone in its group: its return (a baseline of 0), zero, or none,
so that it leaves the loss."""

Unjudged = Literal["earlier", "trajectory"]
"""What an unjudged turn takes along: the `earlier` turns, whose returns would need it, or the
whole `trajectory`."""

Level = Literal["off", "token", "turn", "trajectory"]
"""What mismatch rejection keeps or drops as one."""

Mean = Literal["geometric", "arithmetic"]
"""How the ratios of a turn or a trajectory become one number."""

ProfilingMode = Literal["soft", "hard", "off"]
"""`soft` keeps by chance, rising with the coverage; `hard` cuts."""

Aggregation = Literal["seq-mean-token-sum", "seq-mean-token-mean", "token-mean"]
"""From tokens to one loss; a sequence is a row, and a row is one turn."""

Denominator = Literal["kept", "all", "planned"]
"""Over what a mean is: what is `kept` in the loss, `all` that was generated, or what was `planned`
before anything was sampled, which alone depends on no reward."""

Spread = Literal[0, 1]
"""Degrees of freedom that a standard deviation gives up."""
