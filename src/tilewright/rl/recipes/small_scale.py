"""Settings that every recipe shares at the scale `small`, so that their results compare.

A value of `None` at the scale `paper` leaves the setting as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.errors import writing
from tilewright.rl.data.cold_start import ColdStartMix, cold_start
from tilewright.rl.recipes.recipe import Origin, RecipeData, RecipeValue

CONVERSATIONS = "conversations.jsonl"

MODEL = {"hidden": 128, "layers": 2, "heads": 4, "positions": 512, "vocabulary": 1500}
WHY = "a new model of a million weights at the scale small"


def small_sft() -> tuple[RecipeValue, ...]:
    """Return the settings of a stage `sft`."""
    return tuple(
        RecipeValue(f"model.from_scratch.{name}", None, "ours", WHY, value)
        for name, value in MODEL.items()
    )


def small_rl(context_tokens: int | None = None, source: str = WHY) -> tuple[RecipeValue, ...]:
    """Return the settings of a stage `rl`; `context_tokens` is the published value and its source.

    A context that does not fit makes no rollout, so a paper's longest context is a setting.
    """
    origin: Origin = "ours" if context_tokens is None else "paper"
    return (
        RecipeValue("overrides.sampling.context_tokens", context_tokens, origin, source, 512),
        RecipeValue("overrides.sampling.reply_tokens", None, "ours", WHY, 64),
        RecipeValue("health.reference", None, "ours", "saves a copy of the model", False),
        RecipeValue("checkpoints.every", None, "ours", "a kill costs so many steps", 4),
    )


def cold_start_rows(
    data: RecipeData, *, count: int, turns: int, mix: ColdStartMix
) -> dict[str, Any]:
    """Write conversations about programs of the family nano; return the setting that names them."""
    target = data.path / CONVERSATIONS
    if not target.exists():
        rows = cold_start(
            data.group,
            data.store(),
            mix,
            count=count,
            turns=turns,
            seed=0,
            extent=data.extent,
        )
        write_rows(target, rows)
    return {"data.conversations": [str(target)]}


def write_rows(target: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as JSON lines; the file is there as a whole or not at all."""
    fresh = target.with_suffix(".new")
    with writing(target):
        fresh.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        fresh.replace(target)
