"""The estimator applied to an existing event log: no device, no model, no new evaluation.

Rewards, returns, filters, PRS and advantages follow from verdicts, so they are computed again.
Mismatch rejection needs the log-probabilities of a trainer, which no log holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from tilewright.errors import RecordError
from tilewright.records import Rejected
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, EvalSummary, RunStarted, TurnFinished
from tilewright.records.run_folder import read_report
from tilewright.rl.coverage_sampling import keep_chance
from tilewright.rl.estimator import TurnEstimate, TurnVerdicts, estimate_turns
from tilewright.rl.masked_tensors import Masked, listed, zero_filled
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import judged
from tilewright.rl.training_rows import turns_from
from tilewright.scoring.rewards import measured, without_checks

__all__ = [
    "Place",
    "RecordedBatch",
    "Replayed",
    "masks",
    "place_of",
    "read_batches",
    "replay",
    "replay_metrics",
]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a turn in a run."""

    batch: str
    """Its rollout batch; empty in a search run, which is one batch."""
    group: str
    """The rollouts whose returns the estimator compares with its own."""
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

    @cached_property
    def size(self) -> int:
        """Number of turns."""
        return sum(name is not None for row in self.asks for name in row)


def read_batches(folder: Path, *, checks: bool = True) -> list[RecordedBatch]:
    """Return the rollout batches of a run, in the order of their first turn.

    Batches of held-out problems are left out: no training uses them.

    Args:
        folder: of the run.
        checks: `False` for the view without checks, see `tilewright.scoring.rewards`.

    Raises:
        RecordError: it is no run, it is damaged, or no answer in it was judged.
    """
    found: dict[str, dict[tuple[str, int], dict[int, tuple[str, EvalSummary | None]]]] = {}
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
        report = read_report(folder / judgement.report)
        found = measured(report) if isinstance(report.outcome, Rejected) else None
        if found is not None:
            changes = {"unchecked": found[0], "unchecked_low": found[1]}
            judgement = judgement.model_copy(update=changes)
    return without_checks(judgement)


def _batch(
    name: str, rows: dict[tuple[str, int], dict[int, tuple[str, EvalSummary | None]]]
) -> RecordedBatch:
    turns = range(max(max(row) for row in rows.values()) + 1)
    empty = (None, None)
    return RecordedBatch(
        name=name,
        trajectories=tuple(rows),
        asks=tuple(tuple(row.get(t, empty)[0] for t in turns) for row in rows.values()),
        judgements=tuple(tuple(row.get(t, empty)[1] for t in turns) for row in rows.values()),
    )


@dataclass(frozen=True)
class Replayed:
    """A batch under one preset; tensors are (B, T)."""

    batch: RecordedBatch
    preset: Preset
    turns: TurnVerdicts
    estimate: TurnEstimate


def replay(batch: RecordedBatch, preset: Preset, seed: int = 0) -> Replayed:
    """Return the estimate of a preset for a batch, whose sizes replace those of the preset.

    Args:
        batch: from `read_batches`.
        preset: the estimator.
        seed: of the run, for PRS.
    """
    sizes = Counter(group for group, _ in batch.trajectories)
    changes = {
        "prompts": len(sizes),
        "rollouts": max(sizes.values()),
        "turns": len(batch.asks[0]),
    }
    sampling = preset.sampling.model_copy(update=changes)
    preset = preset.model_copy(update={"sampling": sampling})
    present = [[name is not None for name in row] for row in batch.asks]
    verdicts = [[judged(item) for item in row] for row in batch.judgements]
    turns = turns_from(batch.trajectories, present, verdicts, preset, seed)
    return Replayed(batch, preset, turns, estimate_turns(turns, preset))


def replay_metrics(parts: Sequence[Replayed], turn: int | None = None) -> Row:
    """Return counts, means and shares over turns; a mean without a known value is `None`.

    `kept_profiling` is the share that PRS keeps of the correct turns with a coverage. `learned` is
    the share of present turns that are in the loss before mismatch rejection.

    Args:
        parts: batches under one preset.
        turn: only turns of this number; default: all.
    """
    chosen = slice(None) if turn is None else slice(turn, turn + 1)

    def column(values: Callable[[TurnVerdicts, TurnEstimate], torch.Tensor]) -> torch.Tensor:
        found = [values(part.turns, part.estimate)[:, chosen].flatten() for part in parts]
        return torch.cat(found)

    present = column(lambda turns, _: turns.present)
    judged = column(lambda turns, _: turns.rewards.known)
    eligible = column(lambda turns, _: turns.eligible)
    covered = column(lambda turns, _: turns.coverage.known)
    advantages = column(lambda _, made: made.advantages.values)
    has_advantage = column(lambda _, made: made.advantages.known)
    returns = column(lambda _, made: made.returns.values)
    squared = _mean(advantages**2, has_advantage)
    return {
        "turns": int(present.sum()),
        "unjudged": int((present & ~judged).sum()),
        "correct": _share(eligible, judged),
        "reward": _mean(column(lambda turns, _: turns.rewards.values), judged),
        "return": _mean(returns, column(lambda _, made: made.returns.known)),
        "advantage": _mean(advantages, has_advantage),
        "advantage_rms": None if squared is None else squared**0.5,
        "filtered": _share(column(lambda _, made: made.filtered), present),
        "kept_profiling": _share(column(lambda _, made: made.profiled), eligible & covered),
        "learned": _share(column(lambda _, made: made.learned), present),
    }


def _mean(values: torch.Tensor, known: torch.Tensor) -> float | None:
    return float(values[known].to(torch.float64).mean()) if bool(known.any()) else None


def _share(chosen: torch.Tensor, among: torch.Tensor) -> float | None:
    whole = int(among.sum())
    return int((chosen & among).sum()) / whole if whole else None


def masks(part: Replayed) -> list[Row]:
    """Return the estimate of each present turn, and the reason if the loss leaves it out."""
    turns, made = part.turns, part.estimate
    tables = {
        "reward": listed(turns.rewards),
        "return": listed(made.returns),
        "advantage": listed(made.advantages),
        "coverage": listed(turns.coverage),
    }
    chances = keep_chance(zero_filled(turns.coverage), **part.preset.profiling.model_dump())
    sampled = Masked(chances, turns.eligible & turns.coverage.known)
    tables |= {"chance": listed(sampled), "draw": listed(Masked(turns.uniforms, sampled.known))}
    found: list[Row] = []
    for b, (group, rollout) in enumerate(part.batch.trajectories):
        for t, name in enumerate(part.batch.asks[b]):
            if name is None:
                continue
            judgement = part.batch.judgements[b][t]
            found.append(
                {
                    "ask": name,
                    "group": group,
                    "rollout": rollout,
                    "turn": t,
                    "verdict": judgement.verdict if judgement is not None else "unjudged",
                    **{field: rows[b][t] for field, rows in tables.items()},
                    "out": _reason(part, b, t),
                }
            )
    return found


def _reason(part: Replayed, b: int, t: int) -> str:
    """Return why a turn is not in the loss; empty if it is."""
    made = part.estimate
    if not bool(part.turns.rewards.known[b, t]):
        return "unjudged"
    if bool(made.filtered[b, t]):
        return "filter"
    if not bool(made.returns.known[b, t]):
        return "another turn unjudged"
    if not bool(made.advantages.known[b, t]):
        return "alone in its group"
    return "" if bool(made.profiled[b, t]) else "PRS"
