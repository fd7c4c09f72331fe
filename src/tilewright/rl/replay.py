"""The estimator applied to an existing event log: no device, no model, no new evaluation.

Mismatch rejection is left out: it needs log-probabilities of a trainer, which no log holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tilewright.errors import RecordError
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, EvalSummary, RunStarted, TurnFinished
from tilewright.records.run_folder import read_report
from tilewright.rl.coverage_sampling import keep_chance
from tilewright.rl.estimator import TurnEstimate, TurnVerdicts, estimate_turns
from tilewright.rl.masked_tensors import Masked, listed, zero_filled
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import judged
from tilewright.rl.training_rows import turns_from
from tilewright.scoring.rewards import without_checks

Row = dict[str, Any]
Cell = tuple[str | None, EvalSummary | None]
"""The id of a turn's request, and its first judgement."""


class Place(NamedTuple):
    """The position of a turn in a run. A search run is one batch, whose name is empty."""

    batch: str
    group: str
    rollout: int
    turn: int


def place_of(ask: Ask) -> Place:
    """Return the position of a turn, from the id of its request.

    The ids of a training are `BATCH/PROBLEM.OCCURRENCE#ROLLOUT.TURN`, and the group is the part
    before `#`. In any other run a group is a problem, and a rollout is a trajectory.
    """
    found = re.fullmatch(rf"(.+)/{re.escape(ask.problem)}\.\d+#(\d+)\.\d+", ask.id)
    if found is None:
        return Place("", ask.problem, ask.sample, ask.turn)
    return Place(found[1], ask.id.rpartition("#")[0], int(found[2]), ask.turn)


@dataclass(frozen=True)
class RecordedBatch:
    """One rollout batch of a log: B trajectories of at most T turns, some of them absent."""

    name: str
    trajectories: tuple[tuple[str, int], ...]
    """Group and rollout of each."""
    asks: tuple[tuple[str | None, ...], ...]
    """Ids of requests, (B, T); `None` for an absent turn."""
    judgements: tuple[tuple[EvalSummary | None, ...], ...]
    """First judgements, (B, T); `None` where there is none."""


def read_batches(folder: Path, *, checks: bool = True) -> list[RecordedBatch]:
    """Return the rollout batches of a run, in the order of their first turn.

    Batches of held-out problems are left out: no training uses them. Without `checks`, rejected
    answers count as if no check had run.

    Raises:
        RecordError: it is no run, it is damaged, or no answer in it was judged.
    """
    found: dict[str, dict[tuple[str, int], dict[int, Cell]]] = {}
    begun = False
    for event in read_events(folder):
        begun = begun or isinstance(event, RunStarted)
        if not isinstance(event, TurnFinished) or event.turn.ask.role != "propose":
            continue
        turn, place = event.turn, place_of(event.turn.ask)
        judgement = turn.judgements[0] if turn.judgements else None
        if judgement is not None and not checks:
            judgement = _unchecked(judgement, folder)
        trajectory = found.setdefault(place.batch, {}).setdefault((place.group, place.rollout), {})
        trajectory[place.turn] = (turn.ask.id, judgement)
    if not begun:
        raise RecordError(f"{folder}: its event log has no beginning")
    batches = [_batch(name, rows) for name, rows in found.items() if not name.startswith("score")]
    if not any(item for batch in batches for row in batch.judgements for item in row):
        raise RecordError(f"{folder}: no answer in it was judged, so there are no rewards")
    return batches


def _unchecked(judgement: EvalSummary, folder: Path) -> EvalSummary:
    """Return a judgement as if no check existed; in an old log only the report has its speed-up."""
    if judgement.verdict == "rejected" and judgement.unchecked is None and judgement.report:
        made = summary_of_report(read_report(folder / judgement.report), "", 0.0)
        changes = {"unchecked": made.unchecked, "unchecked_speedup_low": made.unchecked_speedup_low}
        judgement = judgement.model_copy(update=changes)
    return without_checks(judgement)


def _batch(name: str, rows: dict[tuple[str, int], dict[int, Cell]]) -> RecordedBatch:
    turns = range(max(max(row) for row in rows.values()) + 1)
    cells = [[row.get(turn, (None, None)) for turn in turns] for row in rows.values()]
    asks = tuple(tuple(name for name, _ in row) for row in cells)
    return RecordedBatch(
        name, tuple(rows), asks, tuple(tuple(item for _, item in row) for row in cells)
    )


@dataclass(frozen=True)
class Replayed:
    """A batch under one preset; tensors are (B, T)."""

    batch: RecordedBatch
    preset: Preset
    turns: TurnVerdicts
    estimate: TurnEstimate


def replay(batch: RecordedBatch, preset: Preset, seed: int = 0) -> Replayed:
    """Return the estimate of a preset with the sizes of a batch; PRS needs the run's `seed`."""
    sizes = Counter(group for group, _ in batch.trajectories)
    changes = {"prompts": len(sizes), "rollouts": max(sizes.values()), "turns": len(batch.asks[0])}
    sampling = preset.sampling.model_copy(update=changes)
    preset = preset.model_copy(update={"sampling": sampling})
    present = [[name is not None for name in row] for row in batch.asks]
    verdicts = [[judged(item) for item in row] for row in batch.judgements]
    turns = turns_from(batch.trajectories, present, verdicts, preset, seed)
    return Replayed(batch, preset, turns, estimate_turns(turns, preset))


def replay_metrics(parts: Sequence[Replayed], turn: int | None = None) -> Row:
    """Return counts, means and shares over turns; a mean without a known value is `None`.

    `kept_profiling` is the share that PRS keeps of the correct turns with a coverage. `learned` is
    the share of present turns in the loss before mismatch rejection. `parts` have one preset.
    """
    chosen = slice(None) if turn is None else slice(turn, turn + 1)

    def column(read: Callable[[Replayed], torch.Tensor]) -> torch.Tensor:
        return torch.cat([read(part)[:, chosen].flatten() for part in parts])

    def mean(read: Callable[[Replayed], Masked], power: int = 1) -> float | None:
        known = column(lambda part: read(part).known)
        values = column(lambda part: zero_filled(read(part)))[known] ** power
        return float(values.mean()) if len(values) else None

    present = column(lambda part: part.turns.present)
    judged = column(lambda part: part.turns.rewards.known)
    eligible = column(lambda part: part.turns.eligible)
    covered = column(lambda part: part.turns.coverage.known)
    squared = mean(lambda part: part.estimate.advantages, power=2)
    return {
        "turns": int(present.sum()),
        "unjudged": int((present & ~judged).sum()),
        "correct": _share(eligible, judged),
        "reward": mean(lambda part: part.turns.rewards),
        "return": mean(lambda part: part.estimate.returns),
        "advantage": mean(lambda part: part.estimate.advantages),
        "advantage_rms": None if squared is None else squared**0.5,
        "filtered": _share(column(lambda part: part.estimate.filtered), present),
        "kept_profiling": _share(column(lambda part: part.estimate.profiled), eligible & covered),
        "learned": _share(column(lambda part: part.estimate.learned), present),
    }


def _share(chosen: torch.Tensor, among: torch.Tensor) -> float | None:
    whole = int(among.sum())
    return int((chosen & among).sum()) / whole if whole else None


def masks(part: Replayed) -> list[Row]:
    """Return the estimate of each present turn, and the reason if the loss leaves it out."""
    turns, made = part.turns, part.estimate
    chances = keep_chance(zero_filled(turns.coverage), **part.preset.profiling.model_dump())
    sampled = turns.eligible & turns.coverage.known
    tables = {
        "reward": listed(turns.rewards),
        "return": listed(made.returns),
        "advantage": listed(made.advantages),
        "coverage": listed(turns.coverage),
        "chance": listed(Masked(chances, sampled)),
        "draw": listed(Masked(turns.uniforms, sampled)),
    }
    excluded = {
        "unjudged": ~turns.rewards.known,
        "filter": made.filtered,
        "another turn unjudged": ~made.returns.known,
        "alone in its group": ~made.advantages.known,
        "PRS": ~made.profiled,
    }
    return [
        {
            "ask": name,
            "group": group,
            "rollout": rollout,
            "turn": t,
            "verdict": judgement.verdict if judgement is not None else "unjudged",
            **{field: rows[b][t] for field, rows in tables.items()},
            "out": next((reason for reason, turns in excluded.items() if turns[b, t]), ""),
        }
        for b, (group, rollout) in enumerate(part.batch.trajectories)
        for t, (name, judgement) in enumerate(
            zip(part.batch.asks[b], part.batch.judgements[b], strict=True)
        )
        if name is not None
    ]
