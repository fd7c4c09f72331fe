"""Inspect: a task over problems, a solver of several turns, and scorers of our verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.integrations.packages import INSPECT as PACKAGE
from tilewright.integrations.packages import require

require(PACKAGE)

from inspect_ai import Task, task  # noqa: E402 - after the check of the package
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ChatMessageSystem, ChatMessageUser  # noqa: E402
from inspect_ai.scorer import (  # noqa: E402
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    mean,
    metric,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver  # noqa: E402

from tilewright.config import Config  # noqa: E402
from tilewright.errors import ConfigError  # noqa: E402
from tilewright.integrations.judged_answers import (  # noqa: E402
    AnswerFigures,
    Episode,
    harness_settings,
    judgeable_problems,
    prompt_text,
    shared_episodes,
)
from tilewright.integrations.verdict_table import INSPECT, Ours  # noqa: E402
from tilewright.languages.reply_parser import parse_reply  # noqa: E402
from tilewright.records import Problem  # noqa: E402
from tilewright.scoring.metrics import bootstrap_interval  # noqa: E402

FIELD = "tilewright"
"""The key of a sample's store with its judged answers, oldest first."""


@task
def kernels(
    problems: str = "bundled",
    turns: int = 1,
    p: float = 1.0,
    settings: str | Sequence[str] = (),
) -> Task:
    """Write kernels for the problems at an address.

    Args:
        problems: an address, for example `kernelbench/level1`.
        turns: answers per problem; each later prompt has the feedback about the earlier ones. The
            last answer is scored.
        p: the speed-up that `fast_p` and `fast_p_sure` require.
        settings: settings of tilewright, for example `eval.device=cuda`.
    """
    if not isinstance(turns, int) or turns < 1:
        raise ConfigError(f"turns={turns!r}: give a whole number from 1")
    given = settings.split(",") if isinstance(settings, str) else list(settings)
    chosen = harness_settings([item for item in given if item])
    episode = Episode(shared_episodes(chosen, "inspect"), chosen)
    samples = [_sample(item, episode) for item in judgeable_problems(problems, chosen)]
    return Task(
        dataset=samples,
        solver=answer_with_feedback(turns, given),
        scorer=[correct(given), fast_p(p, given), fast_p_sure(p, given)],
        name="kernels",
    )


def _sample(problem: Problem, episode: Episode) -> Sample:
    system, prompt = prompt_text(episode.reset(problem))
    first = [ChatMessageSystem(content=system)] if system else []
    return Sample(
        input=[*first, ChatMessageUser(content=prompt)],
        id=problem.id,
        metadata={"problem": problem.to_json()},
    )


@solver
def answer_with_feedback(turns: int = 1, settings: Sequence[str] = ()) -> Solver:
    """Ask the model `turns` times, and show it our feedback between two answers."""
    chosen = harness_settings([item for item in settings if item])

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        episode = _episode(state, chosen)
        answers: list[dict[str, Any]] = []
        for turn in range(turns):
            state = await generate(state)
            answer, prompt = await episode.answer(state.output.completion)
            answers.append(answer.fields())
            state.store.set(FIELD, answers)
            if turn + 1 == turns or state.completed:
                break
            text = prompt_text(prompt)[1] if prompt else answer.feedback or answer.reason
            state.messages.append(ChatMessageUser(content=text))
        return state

    return solve


def _episode(state: TaskState, settings: Config) -> Episode:
    episode = Episode(shared_episodes(settings, "inspect"), settings)
    episode.reset(Problem.from_json(state.metadata["problem"]))
    return episode


async def _last_answer(state: TaskState, settings: Config) -> AnswerFigures:
    """Return the last judged answer; after another solver, judge its completion."""
    if not state.store.get(FIELD):
        answer, _ = await _episode(state, settings).answer(state.output.completion)
        state.store.set(FIELD, [answer.fields()])
    return AnswerFigures.of_fields(state.store.get(FIELD)[-1])


@metric
def low_95() -> Metric:
    """The lower end of the 95 % interval over problems, as `tilewright report` computes it."""

    # Inspect reads the annotation to know what it passes.
    def low(scores: list[SampleScore]) -> float:
        return _interval(scores)[0]

    return low


@metric
def high_95() -> Metric:
    """The upper end of the 95 % interval over problems, as `tilewright report` computes it."""

    # Inspect reads the annotation to know what it passes.
    def high(scores: list[SampleScore]) -> float:
        return _interval(scores)[1]

    return high


def _interval(scores: list[SampleScore]) -> tuple[float, float]:
    by_problem: dict[str, list[float]] = {}
    for item in scores:
        by_problem.setdefault(str(item.sample_id), []).append(item.score.as_float())
    if len(by_problem) < 2:
        # Inspect's value of a metric without a number: one problem shows no spread.
        return math.nan, math.nan
    return bootstrap_interval([(math.fsum(group), len(group)) for group in by_problem.values()])


METRICS = [mean(), low_95(), high_95()]


@scorer(metrics=METRICS)
def correct(settings: Sequence[str] = ()) -> Scorer:
    """1: the last answer is correct. An unjudged answer is unscored."""
    chosen = harness_settings([item for item in settings if item])

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's
        answer = await _last_answer(state, chosen)
        return _score(state, answer, INSPECT[Ours(answer.row)].correct)

    return score


@scorer(metrics=METRICS)
def fast_p(p: float = 1.0, settings: Sequence[str] = ()) -> Scorer:
    """1: correct and faster than `p` by the estimate, the published definition."""
    return _fast(p, settings, "speedup")


@scorer(metrics=METRICS)
def fast_p_sure(p: float = 1.0, settings: Sequence[str] = ()) -> Scorer:
    """1: correct, and the whole interval of the speed-up is above `p`."""
    return _fast(p, settings, "low")


def _fast(p: float, settings: Sequence[str], figure: str) -> Scorer:
    chosen = harness_settings([item for item in settings if item])

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's
        answer = await _last_answer(state, chosen)
        value: int | None = None
        match INSPECT[Ours(answer.row)].fast_p:
            case "zero":
                value = 0
            case "by speed-up":
                measured = getattr(answer, figure)
                value = int(measured is not None and measured > p)
            case None:
                pass
        return _score(state, answer, value)

    return score


def _score(state: TaskState, answer: AnswerFigures, value: int | None) -> Score:
    """Return a score with the whole verdict in its metadata; `None`: unscored."""
    problem = Problem.from_json(state.metadata["problem"])
    files = parse_reply(state.output.completion, problem.entry).files
    shared = {
        "answer": files[0].text if files else None,
        "explanation": f"{answer.verdict}: {answer.reason}" if answer.reason else answer.verdict,
        "metadata": {**answer.fields(), "turns": len(state.store.get(FIELD))},
    }
    if value is None:
        why = "unjudged" if answer.verdict == "unjudged" else "not_timed"
        return Score.unscored(reason=why, **shared)
    return Score(value=value, **shared)
