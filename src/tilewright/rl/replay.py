"""The estimator applied to an existing event log: no device, no model, no new evaluation.

Mismatch rejection needs the log-probabilities of a trainer, which only runs of `train rl` have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.loop.candidate_text import code_of
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, EvalSummary, RunStarted, TurnFinished
from tilewright.records.run_folder import read_report
from tilewright.rl.coverage_sampling import keep_chance
from tilewright.rl.estimator import TurnEstimate, TurnVerdicts, compared_tokens, estimate_turns
from tilewright.rl.logged_rewards import LoggedReward, RewardLog
from tilewright.rl.masked_tensors import Masked, listed, zero_filled
from tilewright.rl.mismatch_sampling import reject
from tilewright.rl.presets import Preset
from tilewright.rl.prompt_contexts import contexts_of_run
from tilewright.rl.rewards.turn_reward import JudgedTurn, find_reward
from tilewright.rl.rollouts import judged, verdict_of
from tilewright.rl.tokens import log_ratio_file, read_log_ratios
from tilewright.rl.training_config import TrainConfig, load_training
from tilewright.rl.training_rows import Earlier, rewards_of, turns_from
from tilewright.scoring.rewards import without_checks

MIN_LOG_RATIO = -1e4
"""A token that the trainer rules out has minus infinity, which every bound rejects as well."""
Row = dict[str, Any]


class Cell(NamedTuple):
    """A turn of a log; an absent one has no `ask`."""

    ask: str | None = None
    judgement: EvalSummary | None = None
    code: str = ""
    """Its program, if the caller wants it."""
    parent: str | None = None
    """The request of the program that it was written to improve on."""
    problem: str = ""
    sample: int = 0
    """Number of its trajectory in the run."""


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
    cells: tuple[tuple[Cell, ...], ...]
    """Turns, (B, T)."""
    stored: Mapping[str, EvalSummary | None]
    """Judgements of the turns of stored contexts and of all batches, by request."""
    has_code: bool = False
    log_ratios: Path | None = None
    """File of the trainer's log-probabilities minus the sampler's; `None`: the run has none."""

    @property
    def asks(self) -> list[list[str | None]]:
        """Ids of requests, (B, T); `None` for an absent turn."""
        return [[cell.ask for cell in row] for row in self.cells]


def trained_settings(folder: Path) -> TrainConfig | None:
    """Return the settings of a run of `train rl`; `None`: it is another run, or has lost them."""
    begun = next(read_events(folder, left_out=lambda _: None), None)
    if not isinstance(begun, RunStarted) or begun.kind != "train":
        return None
    try:
        return load_training(folder / "run.yaml", recorded=True)
    except ConfigError:
        return None


def read_batches(
    folder: Path, *, checks: bool = True, with_code: bool = False
) -> list[RecordedBatch]:
    """Return the rollout batches of a run, in the order of their first turn.

    Batches of held-out problems are left out: no training uses them. Without `checks`, rejected
    answers count as if no check had run. `with_code` keeps the programs, for rewards that read
    them.

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
        ask, code = turn.ask, code_of(turn) if with_code else ""
        parent = ask.parents[-1] if ask.parents else None
        trajectory[place.turn] = Cell(ask.id, judgement, code, parent, ask.problem, ask.sample)
    if not begun:
        raise RecordError(f"{folder}: its event log has no beginning")
    # An exemplar belongs to an earlier batch.
    cells = [cell for rows in found.values() for row in rows.values() for cell in row.values()]
    stored = _stored_judgements(folder, checks=checks)
    stored |= {cell.ask: cell.judgement for cell in cells if cell.ask}
    batches = [
        _batch(name, rows, folder, stored, has_code=with_code)
        for name, rows in found.items()
        if not name.startswith("score")
    ]
    if not any(item.judgement for batch in batches for row in batch.cells for item in row):
        raise RecordError(f"{folder}: no answer in it was judged, so there are no rewards")
    return batches


def _stored_judgements(folder: Path, *, checks: bool) -> dict[str, EvalSummary | None]:
    found = {name: verdict_of(turn) for name, turn in contexts_of_run(folder).turns().items()}
    if checks:
        return dict(found)
    return {name: without_checks(item) if item else None for name, item in found.items()}


def _unchecked(judgement: EvalSummary, folder: Path) -> EvalSummary:
    """Return a judgement as if no check existed; in an old log only the report has its speed-up."""
    if judgement.verdict == "rejected" and judgement.unchecked is None and judgement.report:
        made = summary_of_report(read_report(folder / judgement.report), "", 0.0)
        changes = {"unchecked": made.unchecked, "unchecked_speedup_low": made.unchecked_speedup_low}
        judgement = judgement.model_copy(update=changes)
    return without_checks(judgement)


def _batch(
    name: str,
    rows: dict[tuple[str, int], dict[int, Cell]],
    folder: Path,
    stored: Mapping[str, EvalSummary | None],
    *,
    has_code: bool,
) -> RecordedBatch:
    turns = range(max(max(row) for row in rows.values()) + 1)
    cells = tuple(tuple(row.get(turn, Cell()) for turn in turns) for row in rows.values())
    path = log_ratio_file(folder, name)
    log_ratios = path if name and path.exists() else None
    return RecordedBatch(name, tuple(rows), cells, stored, has_code, log_ratios)


def _table(asks: Sequence[Sequence[str | None]], found: Mapping[str, torch.Tensor]) -> Masked:
    """Return the log ratios of requests in their places, (B, T, L)."""
    longest = max(map(len, found.values()), default=0)
    values = torch.zeros(len(asks), len(asks[0]), longest, dtype=torch.float64)
    known = torch.zeros_like(values, dtype=torch.bool)
    for b, row in enumerate(asks):
        for t, name in enumerate(row):
            if name is not None and name in found:
                values[b, t, : len(found[name])] = found[name]
                known[b, t, : len(found[name])] = True
    return Masked(values.clamp(min=MIN_LOG_RATIO), known)


class KeptTokens(NamedTuple):
    """The numbers of tokens that mismatch rejection compares and keeps, int64 (B, T)."""

    written: torch.Tensor
    left: torch.Tensor


@dataclass(frozen=True)
class Replayed:
    """A batch under one preset; tensors are (B, T)."""

    batch: RecordedBatch
    preset: Preset
    turns: TurnVerdicts
    estimate: TurnEstimate
    mismatch: KeptTokens | None
    """`None`: the run has no log-probabilities of the trainer."""

    @property
    def rewards(self) -> Masked:
        """Rewards before any smoothing, (B, T)."""
        return rewards_of(_verdicts(self.batch), self.preset.reward)

    @property
    def rejected(self) -> torch.Tensor:
        """Turns of which mismatch rejection keeps no token, bool."""
        if self.mismatch is None:
            return torch.zeros_like(self.turns.present)
        return self.turns.present & (self.mismatch.left == 0)

    @property
    def learned(self) -> torch.Tensor:
        """Turns in the loss, bool."""
        return self.estimate.learned & ~self.rejected


def replay_all(batches: Sequence[RecordedBatch], preset: Preset, seed: int = 0) -> list[Replayed]:
    """Return the estimates of a preset for all batches of a run, in their order.

    A smoothed reward needs the batches before its own.
    """
    log, window, found = RewardLog(), preset.smoothing.window, []
    for batch in batches:
        problems = {cell.problem for row in batch.cells for cell in row if cell.ask}
        earlier = log.before(batch.name, problems, window) if window else {}
        found.append(replay(batch, preset, seed, earlier))
        if window:
            log.add(batch.name, _logged(batch, preset))
    return found


def _logged(batch: RecordedBatch, preset: Preset) -> Iterator[LoggedReward]:
    rewards = listed(rewards_of(_verdicts(batch), preset.reward))
    for row, values in zip(batch.cells, rewards, strict=True):
        for turn, (cell, value) in enumerate(zip(row, values, strict=True)):
            if value is not None:
                yield LoggedReward(cell.problem, cell.sample, turn, value)


def replay(
    batch: RecordedBatch,
    preset: Preset,
    seed: int = 0,
    earlier: Mapping[str, Sequence[float]] | None = None,
) -> Replayed:
    """Return the estimate of a preset with the sizes of a batch; PRS needs the run's `seed`.

    `earlier` are the rewards before the batch by problem, which smoothing needs.
    """
    sizes = Counter(group for group, _ in batch.trajectories)
    changes = {"prompts": len(sizes), "rollouts": max(sizes.values()), "turns": len(batch.asks[0])}
    sampling = preset.sampling.model_copy(update=changes)
    preset = preset.model_copy(update={"sampling": sampling})
    present = [[name is not None for name in row] for row in batch.asks]
    if find_reward(preset.reward.function).reads_code and not batch.has_code:
        raise RecordError(f"the reward {preset.reward.function} reads programs: read them as well")
    problems = [next((cell.problem for cell in row if cell.ask), "") for row in batch.cells]
    before, verdicts = Earlier(problems, earlier or {}), _verdicts(batch)
    turns = turns_from(batch.trajectories, present, verdicts, preset, seed, before)
    estimate = estimate_turns(turns, preset)
    return Replayed(batch, preset, turns, estimate, _mismatch(batch, estimate, preset))


def _verdicts(batch: RecordedBatch) -> list[list[JudgedTurn | None]]:
    return [[_judged(cell, batch.stored) for cell in row] for row in batch.cells]


def _judged(cell: Cell, known: Mapping[str, EvalSummary | None]) -> JudgedTurn | None:
    found = judged(cell.judgement)
    if found is None:
        return None
    parent = judged(known.get(cell.parent)) if cell.parent is not None else None
    return JudgedTurn(found, cell.code, parent, cell.parent in known)


def _mismatch(batch: RecordedBatch, estimate: TurnEstimate, preset: Preset) -> KeptTokens | None:
    """Return the numbers of tokens that mismatch rejection keeps in a batch."""
    if batch.log_ratios is None:
        return None
    found = _table(batch.asks, read_log_ratios(batch.log_ratios))
    compared = compared_tokens(estimate, found.known, preset)
    if not bool(compared.any()):
        return KeptTokens(compared.sum(-1), compared.sum(-1))
    settings = preset.mismatch.model_dump(exclude={"over"})
    made = reject(found.values, torch.zeros_like(found.values), compared, **settings)
    return KeptTokens(made.written, made.left)


def replay_metrics(parts: Sequence[Replayed], turn: int | None = None) -> Row:
    """Return counts, means and shares over turns; a mean without a known value is `None`.

    `kept_profiling` is the share that PRS keeps of the correct turns with a coverage, and
    `kept_mismatch` the share that MRS keeps of the tokens. `learned` is the share of present turns
    in the loss. `parts` have one preset.
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
    rejections = [part.mismatch for part in parts if part.mismatch is not None]
    left = sum(int(item.left[:, chosen].sum()) for item in rejections)
    written = sum(int(item.written[:, chosen].sum()) for item in rejections)
    squared = mean(lambda part: part.estimate.advantages, power=2)
    return {
        "turns": int(present.sum()),
        "unjudged": int((present & ~judged).sum()),
        "correct": _share(eligible, judged),
        "reward": mean(lambda part: part.rewards),
        "return": mean(lambda part: part.estimate.returns),
        "advantage": mean(lambda part: part.estimate.advantages),
        "advantage_rms": None if squared is None else squared**0.5,
        "filtered": _share(column(lambda part: part.estimate.filtered), present),
        "kept_profiling": _share(column(lambda part: part.estimate.profiled), eligible & covered),
        "kept_mismatch": left / written if written else None,
        "learned": _share(column(lambda part: part.learned), present),
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
        "reward": listed(part.rewards),
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
        "MRS": part.rejected,
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
            (cell.ask, cell.judgement) for cell in part.batch.cells[b]
        )
        if name is not None
    ]
