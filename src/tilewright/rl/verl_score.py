"""Verdicts as scores of verl: `reward.custom_reward_function.path=pkg://tilewright.rl.verl_score`.

It follows verl 0.9.1, which may add keywords of its own reward model, and does not import it. verl
has no value for "unjudged", so such a reply raises unless `reward.on_unjudged=zero`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright import config as settings_tree
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.rl.reward_scorer import problem_of, scorer_of


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,  # noqa: ANN401 - of the data set
    extra_info: Mapping[str, Any] | None = None,
    *,
    config: str | None = None,
    overrides: Sequence[str] = (),
    details: bool = False,
    **_: Any,  # noqa: ANN401 - what verl adds
) -> float | dict[str, float]:
    """Return the reward of a reply.

    `ground_truth` is the reference's source, or a problem of ours as JSON. The problem's name is
    `data_source` with the `uuid`, `name` or `problem_id` of `extra_info`. `config` is a YAML file
    of settings, and `overrides` are settings after it, each `path=value`. With `details` it returns
    a mapping of `score`, `acc` (1 if correct), `rejected` and `unjudged`, which verl logs.

    Raises:
        ConfigError: settings are wrong, or they ask for `None`.
        InfrastructureError: the reply could not be judged.
    """
    settings = _settings(config, tuple(overrides))
    extra = extra_info or {}
    name = extra.get("uuid", extra.get("name", extra.get("problem_id")))
    named = {} if name is None else {"name": f"{data_source}_{name}"}
    problem = problem_of({"ground_truth": ground_truth, "extra_info": named}, settings)
    found = scorer_of(settings).score(problem, solution_str)
    assert found.reward is not None
    if not details:
        return found.reward
    names = {"acc": "correct", "rejected": "rejected", "unjudged": "unjudged"}
    shares = {name: float(found.judgement.verdict == said) for name, said in names.items()}
    return {"score": found.reward, **shares}


async def compute_score_async(*given: Any, **more: Any) -> float | dict[str, float]:  # noqa: ANN401
    """Return the reward of a reply without blocking verl's loop; see `compute_score`."""
    return await asyncio.to_thread(compute_score, *given, **more)


@lru_cache(16)
def _settings(file: str | None, overrides: tuple[str, ...]) -> Config:
    settings = settings_tree.load(None if file is None else Path(file), overrides)
    if settings.reward.on_unjudged == "none":
        raise ConfigError("reward.on_unjudged=none: verl wants a number; `raise` or `zero`")
    return settings
