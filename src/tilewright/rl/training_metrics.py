"""The health of a training, step by step: figures for the event log. Nothing here decides."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from tilewright.records.events import Turn
from tilewright.rl.estimator import Rows, TurnEstimate, Turns
from tilewright.rl.masked_tensors import Masked
from tilewright.rl.mismatch_sampling import mean_log_ratios, ratios
from tilewright.rl.presets import Preset
from tilewright.rl.rollouts import RolloutBatch, is_unjudged
from tilewright.rl.training_config import HealthSection
from tilewright.rl.training_rows import reward_of
from tilewright.scoring.metrics import Score, fast_p, pass_at_k
from tilewright.scoring.summary import score_of

__all__ = ["Learned", "Watch", "figures_of", "line_of", "reward_noise", "scored"]

Figures = dict[str, float | None]
FASTER = (1.0, 1.2, 1.5, 2.0)
"""Thresholds of Dr. Kernel's tables."""
PASS_AT = (1, 4, 16)
"""As many of them as a group has rollouts."""
SHOWN = ("reward", "correct", "fast@1.2", "kept_mismatch", "kept_profiling", "entropy", "kl")


class Learned(Protocol):
    """What a step was made of, as an engine leaves it."""

    @property
    def played(self) -> RolloutBatch:
        """The batch."""

    @property
    def turns(self) -> Turns:
        """Its verdicts."""

    @property
    def estimate(self) -> TurnEstimate:
        """What follows from them."""

    @property
    def rows(self) -> Rows:
        """What is in the loss."""

    @property
    def before(self) -> Tensor:
        """The trainer's log-probabilities before the step, (B, T, L)."""

    @property
    def sampler(self) -> Tensor:
        """The sampler's, (B, T, L)."""

    @property
    def generated(self) -> Tensor:
        """Bool (B, T, L)."""


def figures_of(learned: Learned, preset: Preset) -> Figures:
    """Return what there is to say of a step, but for what the engine alone knows.

    Shares are of 1; log-probabilities are natural; rewards and advantages have no unit.
    """
    return {
        **scored(learned.played, preset),
        **_kept(learned),
        **_advantages(learned.estimate.advantages),
        **_mismatch(learned),
    }


def scored(played: RolloutBatch, preset: Preset) -> Figures:
    """Return what the verdicts of a batch come to, over all turns and turn by turn."""
    turns = [turn for row in played.turns for turn in row if turn is not None]
    judged = [turn for turn in turns if not is_unjudged(turn)]
    rewards = [reward_of(turn.judgements[0], preset.reward) for turn in judged]
    coverage = [c for turn in judged if (c := turn.judgements[0].coverage) is not None]
    sources = [turn.source for turn in turns if turn.source]
    found: Figures = {
        "turns": float(len(turns)),
        "absent": _share(sum(row.count(None) for row in played.turns), _places(played)),
        "unjudged": _share(len(turns) - len(judged), len(turns)),
        "reward": _mean([value for value in rewards if value is not None]),
        "coverage": _mean(coverage),
        "unique": _share(len(set(sources)), len(sources)),
        "reply_tokens": _mean([t.reply.reply_tokens for t in turns if t.reply is not None]),
        "cut_off": _share(
            sum(t.reply is not None and t.reply.finish == "length" for t in turns), len(turns)
        ),
        "reward_noise": reward_noise(judged, preset),
        **_rates(judged, ""),
        **_hacks(judged),
    }
    for number in range(len(played.turns[0])):
        column = [row[number] for row in played.turns]
        here = [turn for turn in column if turn is not None and not is_unjudged(turn)]
        found |= _rates(here, f"turn{number + 1}/")
        found[f"turn{number + 1}/reward"] = _mean(
            [r for t in here if (r := reward_of(t.judgements[0], preset.reward)) is not None]
        )
        found |= _passed(played, number)
    return found


def reward_noise(turns: Sequence[Turn], preset: Preset) -> float | None:
    """Return the standard deviation of the reward of one program, pooled over programs.

    Of correct programs that were judged more than once; `None` where there is none.
    """
    by_source: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in turns:
        reward = reward_of(turn.judgements[0], preset.reward)
        if reward is not None and turn.judgements[0].verdict == "correct":
            by_source[turn.ask.problem, turn.source].append(reward)
    several = [values for values in by_source.values() if len(values) > 1]
    if not several:
        return None
    squares = math.fsum(statistics.variance(v) * (len(v) - 1) for v in several)
    return math.sqrt(squares / sum(len(values) - 1 for values in several))


def line_of(figures: Figures) -> str:
    """Return the figures that a line of progress has room for."""
    parts = []
    for name in SHOWN:
        value = figures.get(name)
        if value is not None:
            parts.append(f"{name} {value:.3g}")
    return ", ".join(parts)


def _rates(turns: Sequence[Turn], prefix: str) -> Figures:
    scores = [s for turn in turns if (s := score_of(turn.judgements[0])) is not None]
    found: Figures = {f"{prefix}correct": _share(sum(s.ok for s in scores), len(scores))}
    for p in FASTER:
        found[f"{prefix}fast@{p:g}"] = fast_p(scores, p) if scores else None
    return found


def _passed(played: RolloutBatch, number: int) -> Figures:
    """Return pass@k of one turn, a mean over groups; groups of fewer than k judged are left out."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for item, row in zip(played.trajectories, played.turns, strict=True):
        turn = row[number]
        score = score_of(turn.judgements[0]) if turn is not None and turn.judgements else None
        if score is not None:
            groups[item.group].append(score)
    found: Figures = {}
    for k in PASS_AT:
        rates = [pass_at_k(len(g), sum(s.ok for s in g), k) for g in groups.values() if len(g) >= k]
        if rates:
            found[f"turn{number + 1}/pass@{k}"] = statistics.fmean(rates)
    return found


def _hacks(judged: Sequence[Turn]) -> Figures:
    """Return the share of rejected turns, and by the finding that rejected them."""
    rejected = [turn for turn in judged if turn.judgements[0].verdict == "rejected"]
    kinds = Counter(code for turn in rejected for code in set(turn.judgements[0].findings))
    found: Figures = {"rejected": _share(len(rejected), len(judged))}
    return found | {f"rejected/{kind}": count / len(judged) for kind, count in kinds.items()}


def _kept(learned: Learned) -> Figures:
    present = learned.turns.present
    mismatch, whole = learned.rows.mismatch, int(present.sum())
    written, left = int(mismatch.written.sum()), int(mismatch.left.sum())
    eligible = learned.turns.eligible & present
    profiled = learned.estimate.profiled & eligible
    trained = learned.rows.weights > 0
    return {
        "kept_mismatch": _share(left, written),
        "vetoed": _share(int(mismatch.vetoed.sum()), whole),
        "kept_profiling": _share(int(profiled.sum()), int(eligible.sum())),
        "filtered": _share(int(learned.estimate.filtered.sum()), whole),
        "without_return": _share(int((present & ~learned.estimate.returns.known).sum()), whole),
        "trained": _share(int(trained.sum()), whole),
        "trained_tokens": float(learned.rows.tokens.sum()),
    }


def _advantages(advantages: Masked) -> Figures:
    known = advantages.values[advantages.known]
    if not len(known):
        return {"advantage/mean": None}
    return {
        "advantage/mean": float(known.mean()),
        "advantage/std": float(known.std(correction=0)),
        "advantage/least": float(known.min()),
        "advantage/most": float(known.max()),
        "advantage/zero": float((known == 0).double().mean()),
    }


def _mismatch(learned: Learned) -> Figures:
    """Compare the sampler's log-probabilities with the trainer's, token by token."""
    wrote = learned.generated
    logs = (learned.before.double() - learned.sampler.double())[wrote]
    whole = mean_log_ratios(ratios(learned.before, learned.sampler, wrote), level="trajectory")
    return {
        # What the bounds of Dr. Kernel would keep, whatever those of this run are.
        "mismatch/within_0.001": float((whole.values[whole.known].abs() <= 1e-3).double().mean()),
        "mismatch/mean_log": float(logs.mean()),
        "mismatch/most_log": float(logs.abs().max()),
        "mismatch/ratio_std": float(torch.exp(logs).std(correction=0)),
    }


def _places(played: RolloutBatch) -> int:
    return sum(len(row) for row in played.turns)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


class Watch:
    """Puts the figures of steps together, and warns. Lifetime: one sitting."""

    def __init__(self, section: HealthSection, preset: Preset, warn: Callable[[str], None]) -> None:
        self._section = section
        self._preset = preset
        self._warn = warn

    def figures(self, learned: Learned, measured: Figures) -> Figures:
        """Return all figures of a step, those included that the engine measured."""
        found = figures_of(learned, self._preset) | measured
        unjudged = found["unjudged"] or 0.0
        if unjudged > self._section.warn_unjudged:
            self._warn(
                f"{unjudged:.1%} of the turns could not be judged; those are not missing at "
                f"random, and above {self._section.stop_unjudged:.0%} the run stops"
            )
        return found
