"""Settings that every recipe shares at the scale `small`, so that their results compare.

A value of `None` at the scale `paper` leaves the setting as it is.
"""

from __future__ import annotations

from tilewright.rl.recipes.recipe import RecipeValue

MODEL = {"hidden": 128, "layers": 2, "heads": 4, "positions": 512, "vocabulary": 1500}
WHY = "a new model of a million weights at the scale small"


def small_sft() -> tuple[RecipeValue, ...]:
    """Return the settings of a stage `sft`."""
    return tuple(
        RecipeValue(f"model.from_scratch.{name}", None, "ours", WHY, value)
        for name, value in MODEL.items()
    )


def small_rl() -> tuple[RecipeValue, ...]:
    """Return the settings of a stage `rl`."""
    return (
        RecipeValue("overrides.sampling.context_tokens", None, "ours", WHY, 512),
        RecipeValue("overrides.sampling.reply_tokens", None, "ours", WHY, 64),
        RecipeValue("health.reference", None, "ours", "saves a copy of the model", False),
        RecipeValue("checkpoints.every", None, "ours", "a kill costs so many steps", 4),
    )
