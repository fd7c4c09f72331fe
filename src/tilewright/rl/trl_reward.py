"""Verdicts as rewards of TRL: `reward_funcs=[trl_reward]`, or an object with its own settings.

It follows TRL 1.16 and does not import it. TRL reads `None` as "this reward does not apply" and
averages over other rewards, so replies give `None` only under `reward.on_unjudged=none`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.rl.reward_scorer import Scored, problem_of, scorer_of

Completion = str | Sequence[Mapping[str, Any]]


class TrlReward:
    """A reward function of TRL. Lifetime: the training; it can be pickled.

    It reads the settings `executor`, `eval` and `reward`; default: `tilewright.config.load()`.
    """

    def __init__(self, settings: Config | None = None) -> None:
        self.settings = settings or config.load()
        self.__name__ = self.settings.reward.name
        """The name of the reward in TRL's logs."""

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]] | None = None,  # noqa: ARG002 - TRL's
        **columns: Any,  # noqa: ANN401 - of the data set
    ) -> list[float | None]:
        """Return a reward for each completion.

        The columns of a row name its problem, see `tilewright.rl.reward_scorer.problem_of`. Rows of
        `tilewright data export --format rl` and of Dr. Kernel's RL data have such columns.

        Raises:
            ConfigError: a row names no problem.
            InfrastructureError: a reply could not be judged.
        """
        if len(prompts) != len(completions):
            raise ConfigError(f"{len(prompts)} prompts with {len(completions)} completions")
        # The trainer's state, for example, is no column.
        tables = {
            name: values
            for name, values in columns.items()
            if isinstance(values, list | tuple) and len(values) == len(prompts)
        }
        rows = [{name: tables[name][place] for name in tables} for place in range(len(prompts))]
        problems = [problem_of(row, self.settings) for row in rows]
        items = [*zip(problems, map(_text, completions), strict=True)]
        found = scorer_of(self.settings).scores(items)
        _tell(found, columns)
        return [item.reward for item in found]


class AsyncTrlReward(TrlReward):
    """The same for TRL's event loop, which computes other rewards at the same time."""

    async def __call__(self, *given: Any, **columns: Any) -> list[float | None]:  # type: ignore[override]  # noqa: ANN401
        """Return a reward for each completion; arguments and errors are those of `TrlReward`."""
        return await asyncio.to_thread(super().__call__, *given, **columns)


def trl_reward(*given: Any, **columns: Any) -> list[float | None]:  # noqa: ANN401
    """Return a reward for each completion, by the default settings; see `TrlReward`."""
    return TrlReward()(*given, **columns)


def _text(completion: Completion) -> str:
    """Return the last message of the assistant."""
    if isinstance(completion, str):
        return completion
    replies = [item for item in completion if item.get("role") == "assistant"]
    content = replies[-1].get("content") if replies else ""
    if isinstance(content, str):
        return content
    # Multimodal models give a list of parts.
    return "".join(part.get("text") or "" for part in content or ())


def _tell(found: Sequence[Scored], columns: Mapping[str, Any]) -> None:
    """Add verdicts to TRL's table of completions, and their shares to its metrics."""
    verdicts = [item.judgement.verdict for item in found]
    if extra := columns.get("log_extra"):
        extra("verdict", verdicts)
        extra("reason", [item.judgement.reason for item in found])
    if found and (metric := columns.get("log_metric")):
        for verdict in ("correct", "rejected", "unjudged"):
            metric(f"tilewright/{verdict}", verdicts.count(verdict) / len(found))
