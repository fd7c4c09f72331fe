"""What an estimator makes of a log that is there already: no device, no model, nothing judged.

Rewards, returns, filters, PRS and advantages follow from verdicts and are computed anew. Mismatch
rejection does not: it needs the log-probabilities of a trainer, which no log holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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
from tilewright.rl.coverage_sampling import keep_chance, rewards, uniforms
from tilewright.rl.estimator import TurnEstimate, Turns, estimate_turns
from tilewright.rl.masked_tensors import Masked, masked
from tilewright.rl.presets import Preset
from tilewright.scoring.rewards import measured, without_checks

__all__ = ["Batch", "Place", "Replayed", "figures", "masks", "place_of", "read_batches", "replay"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn belongs."""

    batch: str
    """Its rollout batch; empty in a run of search, which is one batch."""
    group: str
    """The rollouts that it is compared with."""
    rollout: int
    turn: int


def place_of(ask: Ask) -> Place:
    """Return where a turn belongs, by the name of its ask.

    A training names its asks `BATCH/PROBLEM.OCCURRENCE#ROLLOUT.TURN`: the group is what stands
    before `#`. In any other run a group is a problem, and a rollout a trajectory.
    """
    name = rf"(.+)/{re.escape(ask.problem)}\.\d+#(\d+)\.\d+"
    found = re.fullmatch(name, ask.id)
    if found is None:
        return Place("", ask.problem, ask.sample, ask.turn)
    return Place(found[1], ask.id.rpartition("#")[0], int(found[2]), ask.turn)


@dataclass(frozen=True)
class Batch:
    """The turns of one rollout batch: B trajectories of at most T turns, some of them absent."""

    name: str
    trajectories: tuple[tuple[str, int], ...]
    """Group and rollout of each."""
    asks: tuple[tuple[str | None, ...], ...]
    """Names of asks, `None` where there is no such turn."""
    said: tuple[tuple[EvalSummary | None, ...], ...]
    """First judgements, `None` where there is none."""

    @cached_property
    def size(self) -> int:
        """How many turns there are."""
        return sum(name is not None for row in self.asks for name in row)


def read_batches(folder: Path, *, checks: bool = True) -> list[Batch]:
    """Return the rollout batches of a run, in the order in which they began.

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
        turn = event.turn
        place = place_of(turn.ask)
        said = turn.judgements[0] if turn.judgements else None
        if said is not None and not checks:
            said = _unchecked(said, folder)
        trajectory = found.setdefault(place.batch, {}).setdefault((place.group, place.rollout), {})
        trajectory[place.turn] = (turn.ask.id, said)
    if not begun:
        raise RecordError(f"{folder}: its event log has no beginning")
    # Held-out problems are scored, and nothing is learned from them.
    batches = [_batch(name, rows) for name, rows in found.items() if not name.startswith("score")]
    if not any(said for batch in batches for row in batch.said for said in row):
        raise RecordError(f"{folder}: no answer in it was judged, so there are no rewards")
    return batches


def _unchecked(said: EvalSummary, folder: Path) -> EvalSummary:
    """Return a judgement as if no check had looked; a log of earlier has it in the report alone."""
    if said.verdict == "rejected" and said.unchecked is None and said.report:
        report = read_report(folder / said.report)
        found = measured(report) if isinstance(report.outcome, Rejected) else None
        if found is not None:
            said = said.model_copy(update={"unchecked": found[0], "unchecked_low": found[1]})
    return without_checks(said)


def _batch(
    name: str, rows: dict[tuple[str, int], dict[int, tuple[str, EvalSummary | None]]]
) -> Batch:
    turns = range(max(max(row) for row in rows.values()) + 1)
    empty = (None, None)
    return Batch(
        name=name,
        trajectories=tuple(rows),
        asks=tuple(tuple(row.get(t, empty)[0] for t in turns) for row in rows.values()),
        said=tuple(tuple(row.get(t, empty)[1] for t in turns) for row in rows.values()),
    )


@dataclass(frozen=True)
class Replayed:
    """A batch under a preset, all of shape (B, T)."""

    batch: Batch
    preset: Preset
    turns: Turns
    estimate: TurnEstimate

    @property
    def learned(self) -> torch.Tensor:
        """Turns in the loss, but for mismatch rejection, bool."""
        return self.estimate.advantages.known & self.estimate.profiled & self.turns.present


def replay(batch: Batch, preset: Preset, seed: int = 0) -> Replayed:
    """Return what a preset makes of a batch.

    Args:
        batch: of `read_batches`.
        preset: which estimator; how many prompts, rollouts and turns there are is the batch's.
        seed: of the run, for PRS.
    """
    preset = _sized(preset, batch)
    judged = [
        [item if item is not None and item.verdict != "unjudged" else None for item in row]
        for row in batch.said
    ]

    def of(field: str) -> Masked:
        return masked([[getattr(item, field) if item else None for item in row] for row in judged])

    section = preset.reward
    right = [[None if i is None else float(i.verdict == "correct") for i in row] for row in judged]
    paid = rewards(
        masked(right),
        of("speedup" if section.speedup_estimate == "estimate" else "low"),
        of("coverage"),
        weights=(section.correct, section.speed, section.coverage),
        max_speedup=section.max_speedup,
    )
    groups = {name: n for n, name in enumerate(dict.fromkeys(g for g, _ in batch.trajectories))}
    turns = Turns(
        prompts=torch.tensor([groups[group] for group, _ in batch.trajectories]),
        present=torch.tensor([[name is not None for name in row] for row in batch.asks]),
        rewards=paid,
        eligible=torch.tensor([[item == 1.0 for item in row] for row in right]),
        coverage=of("coverage"),
        draws=uniforms(seed, batch.trajectories, len(batch.asks[0])),
    )
    return Replayed(batch, preset, turns, estimate_turns(turns, preset))


def _sized(preset: Preset, batch: Batch) -> Preset:
    """Return a preset for batches of this size, which its filters ask for."""
    sizes = Counter(group for group, _ in batch.trajectories)
    changes = {
        "prompts": len(sizes),
        "rollouts": max(sizes.values()),
        "turns": len(batch.asks[0]),
    }
    return preset.model_copy(update={"sampling": preset.sampling.model_copy(update=changes)})


def figures(parts: Iterable[Replayed], turn: int | None = None) -> Row:
    """Return what becomes of turns: counts, means, and shares that are kept.

    Args:
        parts: batches under one preset.
        turn: of this number alone; `None`: of all.

    Returns:
        Means are over what is known, `None` where nothing is; `kept_profiling` is the share of
        correct turns with a coverage that PRS keeps, `learned` the share of present turns that are
        in the loss before mismatch rejection.
    """
    rows = [_columns(part, turn) for part in parts]
    columns = {name: torch.cat([row[name] for row in rows]) for name in rows[0]}
    present, judged = columns["present"], columns["judged"]
    measured_ = columns["eligible"] & columns["covered"]
    return {
        "turns": int(present.sum()),
        "unjudged": int((present & ~judged).sum()),
        "correct": _share(columns["eligible"], judged),
        "reward": _mean(columns["reward"], judged),
        "return": _mean(columns["return"], columns["has_return"]),
        "advantage": _mean(columns["advantage"], columns["has_advantage"]),
        "advantage_rms": _mean(columns["advantage"] ** 2, columns["has_advantage"], root=True),
        "filtered": _share(columns["filtered"], present),
        "kept_profiling": _share(columns["profiled"], measured_),
        "learned": _share(columns["learned"], present),
    }


def _columns(part: Replayed, turn: int | None) -> dict[str, torch.Tensor]:
    turns, made = part.turns, part.estimate
    found = {
        "present": turns.present,
        "judged": turns.rewards.known,
        "eligible": turns.eligible,
        "covered": turns.coverage.known,
        "reward": turns.rewards.values,
        "return": made.returns.values,
        "has_return": made.returns.known,
        "advantage": made.advantages.values,
        "has_advantage": made.advantages.known,
        "filtered": made.filtered,
        "profiled": made.profiled,
        "learned": part.learned,
    }
    if turn is None:
        return {name: values.flatten() for name, values in found.items()}
    return {name: values[:, turn : turn + 1].flatten() for name, values in found.items()}


def _mean(values: torch.Tensor, known: torch.Tensor, *, root: bool = False) -> float | None:
    if not bool(known.any()):
        return None
    mean = float(values[known].to(torch.float64).mean())
    return mean**0.5 if root else mean


def _share(chosen: torch.Tensor, among: torch.Tensor) -> float | None:
    whole = int(among.sum())
    return int((chosen & among).sum()) / whole if whole else None


def masks(part: Replayed) -> list[Row]:
    """Return of each turn that is there what the estimator makes of it, and why it is left out."""
    turns, made, chosen = part.turns, part.estimate, part.preset.profiling
    chances = keep_chance(
        torch.where(turns.coverage.known, turns.coverage.values, 0.0), **chosen.model_dump()
    )
    found: list[Row] = []
    for b, (group, rollout) in enumerate(part.batch.trajectories):
        for t, name in enumerate(part.batch.asks[b]):
            if name is None:
                continue
            said = part.batch.said[b][t]
            drawn = bool(turns.eligible[b, t] & turns.coverage.known[b, t])
            found.append(
                {
                    "ask": name,
                    "group": group,
                    "rollout": rollout,
                    "turn": t,
                    "verdict": said.verdict if said is not None else "unjudged",
                    "reward": _at(turns.rewards, b, t),
                    "return": _at(made.returns, b, t),
                    "advantage": _at(made.advantages, b, t),
                    "coverage": _at(turns.coverage, b, t),
                    "chance": float(chances[b, t]) if drawn else None,
                    "draw": float(turns.draws[b, t]) if drawn else None,
                    "out": _reason(part, b, t),
                }
            )
    return found


def _at(table: Masked, b: int, t: int) -> float | None:
    return float(table.values[b, t]) if bool(table.known[b, t]) else None


def _reason(part: Replayed, b: int, t: int) -> str:
    """Say why a turn is not in the loss; empty where it is."""
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
