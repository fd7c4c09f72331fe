"""GRPO as the papers of several recipes name it: its values, and our decisions about it."""

from __future__ import annotations

from typing import Literal

from tilewright.rl.recipes.recipe import RecipeValue

GRPO = "GRPO, Shao et al. 2024, equation 3"
ABSENT = "not part of the system"


def grpo_values(ddof: Literal[0, 1], reason: str) -> tuple[RecipeValue, ...]:
    """Return the settings of GRPO on single turns; `reason` is that of the choice of `ddof`."""
    return (
        RecipeValue("overrides.advantage.estimator", "grpo", "paper", "section on RL"),
        RecipeValue("overrides.advantage.divide_by_std", True, "paper", GRPO),
        RecipeValue("overrides.advantage.ddof", ddof, "ours", reason),
        RecipeValue("overrides.sampling.turns", 1, "paper", "one reply to a prompt"),
        RecipeValue("overrides.loss.kl", 0.0, "ours", "not published"),
        RecipeValue("overrides.loss.aggregation", "seq-mean-token-mean", "paper", GRPO),
        RecipeValue("overrides.loss.clip_high", 0.2, "ours", "not published; as in PPO"),
        RecipeValue("overrides.loss.denominator", "all", "paper", GRPO),
        RecipeValue("overrides.loss.scale", 1.0, "ours", "no constant divides the mean"),
        RecipeValue("overrides.profiling.mode", "off", "paper", ABSENT),
        RecipeValue("overrides.mismatch.level", "off", "paper", ABSENT),
    )
