"""The metrics of a training, step by step, for the event log. No decision depends on them."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tilewright.languages.triton_rules import is_triton
from tilewright.records.events import EvalSummary, Turn
from tilewright.rl.advantages import turn_groups
from tilewright.rl.estimator import LossRows, TurnEstimate, TurnVerdicts
from tilewright.rl.masked_tensors import Masked, listed
from tilewright.rl.mismatch_sampling import mean_log_ratios, ratios
from tilewright.rl.presets import Preset
from tilewright.rl.rewards.turn_reward import find_reward
from tilewright.rl.rollouts import RolloutBatch, verdict_of
from tilewright.rl.training_config import HealthSection
from tilewright.rl.training_rows import Verdicts, paid_verdicts, rewards_of
from tilewright.scoring.metrics import Score, fast_p, pass_at_k
from tilewright.scoring.summary import score_of

Values = dict[str, float | None]
FAST_THRESHOLDS = (1.0, 1.2, 1.5, 2.0)
"""Speed-ups p of the metric fast@p: those of Dr. Kernel's tables."""
PASS_COUNTS = (1, 4, 16)
"""Numbers k of the metric pass@k, as far as a group has so many rollouts."""
MIN_SILENT = 2
"""Batches in a row without any advantage from which on a run warns. One alone may be chance."""
SHOWN = ("reward", "correct", "fast@1.2", "kept_mismatch", "kept_profiling", "entropy", "kl")


@dataclass(frozen=True)
class TrainedStep:
    """The data of one step, as an engine leaves them.

    `before` and `sampler` are the log-probabilities of trainer and sampler, float32 (B, T, L), for
    the `generated` tokens, bool (B, T, L). `entropy` and the `divergence` from the initial model
    are means over these tokens, in nats.
    """

    played: RolloutBatch
    turns: TurnVerdicts
    estimate: TurnEstimate
    rows: LossRows
    before: Tensor
    sampler: Tensor
    generated: Tensor
    entropy: float
    divergence: float | None
    seconds: dict[str, float]


def step_metrics(step: TrainedStep, preset: Preset, *, checks: bool = True) -> Values:
    """Return the metrics of a step, without those that only the engine knows."""
    present, estimate, mismatch = step.turns.present, step.estimate, step.rows.mismatch
    whole, eligible = int(present.sum()), step.turns.eligible & present
    logs = (step.before.double() - step.sampler.double())[step.generated]
    found = ratios(step.before, step.sampler, step.generated)
    means = mean_log_ratios(found, level="trajectory")
    silent = not bool(step.rows.advantages.any())
    near = means.values[means.known].abs() <= 1e-3
    return {
        **verdict_metrics(step.played, preset, checks=checks),
        "kept_mismatch": _share(int(mismatch.left.sum()), int(mismatch.written.sum())),
        "vetoed": _share(int(mismatch.vetoed.sum()), whole),
        "kept_profiling": _share(int((estimate.profiled & eligible).sum()), int(eligible.sum())),
        "filtered": _share(int(estimate.filtered.sum()), whole),
        "without_return": _share(int((present & ~estimate.returns.known).sum()), whole),
        "trained": _share(int((step.rows.weights > 0).sum()), whole),
        "trained_tokens": float(step.rows.tokens.sum()),
        "groups_equal": _equal_groups(step),
        **({"skipped": float(silent)} if preset.optimizer.skip_without_advantage else {}),
        **_exemplars(step.played, preset),
        **_advantages(estimate.advantages),
        # The bounds of Dr. Kernel, whatever those of this run are.
        "mismatch/within_0.001": float(near.double().mean()),
        "mismatch/mean_log": float(logs.mean()),
        "mismatch/most_log": float(logs.abs().max()),
        "mismatch/ratio_std": float(torch.exp(logs).std(correction=0)),
    }


def verdict_metrics(played: RolloutBatch, preset: Preset, *, checks: bool = True) -> Values:
    """Return the metrics of the verdicts of a batch, over all turns and for each turn.

    Without `checks` the rewards are those of a run that pays rejected answers; all other metrics
    follow the verdicts.
    """
    turns = [turn for row in played.turns for turn in row if turn is not None]
    table = [[verdict_of(turn) for turn in row] for row in played.turns]
    verdicts = [item for row in table for item in row if item is not None]
    rewards = listed(rewards_of(paid_verdicts(played, checks=checks), preset.reward))
    cells = [cell for row in played.turns for cell in row]
    flat = [value for row in rewards for value in row]
    earned = [value for cell, value in zip(cells, flat, strict=True) if cell is not None]
    sources = [turn.source for turn in turns if turn.source]
    replies = [turn.reply for turn in turns if turn.reply is not None]
    places = sum(len(row) for row in played.turns)
    rejected = [item for item in verdicts if item.verdict == "rejected"]
    codes = Counter(code for item in rejected for code in set(item.findings))
    found = {
        "turns": float(len(turns)),
        "absent": _share(places - len(turns), places),
        "unjudged": _share(len(turns) - len(verdicts), len(turns)),
        "reward": _mean(flat),
        "coverage": _mean([item.coverage for item in verdicts]),
        "unique": _share(len(set(sources)), len(sources)),
        "reply_tokens": _mean([reply.reply_tokens for reply in replies]),
        "cut_off": _share(sum(reply.finish == "length" for reply in replies), len(turns)),
        "reward_noise": reward_noise(turns, earned, preset),
        **_rates(verdicts, ""),
        **_triton_share(paid_verdicts(played, checks=False), preset),
        "rejected": _share(len(rejected), len(verdicts)),
        **{f"rejected/{code}": count / len(verdicts) for code, count in codes.items()},
    }
    for number in range(len(played.turns[0])):
        column = [row[number] for row in table]
        prefix = f"turn{number + 1}/"
        found |= _rates(column, prefix)
        found[f"{prefix}reward"] = _mean([row[number] for row in rewards])
        found |= _pass_rates([item.group for item in played.trajectories], column, prefix)
    return found


def _triton_share(judged: Verdicts, preset: Preset) -> Values:
    """Return the share of judged programs that pass the tests and are not Triton.

    It needs code, so it is a metric only where the reward reads code.
    """
    if not find_reward(preset.reward.function).reads_code:
        return {}
    turns = [turn for row in judged for turn in row if turn is not None]
    passing = [turn for turn in turns if turn.verdict.verdict == "correct"]
    others = sum(not is_triton(turn.code, "strict") for turn in passing)
    return {"not_triton": _share(others, len(turns))}


def reward_noise(
    turns: Sequence[Turn], rewards: Sequence[float | None], preset: Preset
) -> float | None:
    """Return the pooled standard deviation of the rewards of one correct program, if repeated.

    Where a reward depends on the parent, only rewards with one parent count as repeated.
    """
    reads_parent = find_reward(preset.reward.function).reads_parent
    repeated: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for turn, reward in zip(turns, rewards, strict=True):
        verdict = verdict_of(turn)
        if verdict is not None and reward is not None and verdict.verdict == "correct":
            parent = turn.ask.parents[-1:] if reads_parent else ()
            repeated[turn.ask.problem, turn.source, *parent].append(reward)
    several = [values for values in repeated.values() if len(values) > 1]
    squares = math.fsum(statistics.variance(v) * (len(v) - 1) for v in several)
    degrees = sum(len(values) - 1 for values in several)
    return math.sqrt(squares / degrees) if degrees else None


def metrics_line(metrics: Values) -> str:
    """Return the metrics that a line of progress shows."""
    shown = [(name, metrics.get(name)) for name in SHOWN]
    return ", ".join(f"{name} {value:.3g}" for name, value in shown if value is not None)


def speed_text(metrics: Values) -> str:
    """Return the trained tokens per second of a step for a line of progress; empty before one."""
    seconds = sum(value or 0.0 for name, value in metrics.items() if name.startswith("seconds/"))
    tokens = metrics.get("trained_tokens")
    return f", {tokens / seconds:.0f} tokens/s" if tokens and seconds else ""


def unjudged_warning(metrics: Values, section: HealthSection) -> str:
    """Return a warning if too many turns of a step are unjudged, else an empty text."""
    unjudged = metrics["unjudged"] or 0.0
    text = (
        f"{unjudged:.1%} of the turns could not be judged; those are not missing at random, and "
        f"above {section.stop_unjudged:.0%} the run stops"
    )
    return text if unjudged > section.warn_unjudged else ""


def silent_batches(steps: Sequence[Values]) -> int:
    """Return the number of the last batches in a row that have no advantage above or below 0.

    `steps` are the metrics of the trained batches, in order.
    """
    silent = itertools.takewhile(
        lambda found: not found.get("advantage/least") and not found.get("advantage/most"),
        reversed(steps),
    )
    return sum(1 for _ in silent)


def silence_warning(count: int, metrics: Values) -> str:
    """Return a warning about so many silent batches in a row, empty below two of them."""
    if count < MIN_SILENT:
        return ""
    reward = metrics.get("reward")
    paid = "" if reward is None else f" (mean reward {reward:.3g})"
    return (
        f"{count} batches in a row had no advantage{paid}: all replies to a prompt earn the same, "
        "so the model learns nothing; it may have collapsed"
    )


def _exemplars(played: RolloutBatch, preset: Preset) -> Values:
    """Return the mean number of exemplars that a first prompt shows."""
    if preset.exemplars.selection == "none":
        return {}
    first = [row[0] for row in played.turns if row[0] is not None]
    return {"exemplars": _mean([float(len(turn.ask.shown_turns)) for turn in first])}


def _equal_groups(step: TrainedStep) -> float | None:
    """Return the share of groups of two or more returns whose returns are all equal."""
    returns = step.estimate.returns
    groups = turn_groups(step.turns.prompts, returns.values.shape[1])[returns.known]
    by_group: dict[int, list[float]] = defaultdict(list)
    for group, value in zip(groups.tolist(), returns.values[returns.known].tolist(), strict=True):
        by_group[group].append(value)
    several = [values for values in by_group.values() if len(values) > 1]
    return _share(sum(min(values) == max(values) for values in several), len(several))


def _rates(verdicts: Sequence[EvalSummary | None], prefix: str) -> Values:
    scores = [score for item in verdicts if item and (score := score_of(item))]
    return {
        f"{prefix}correct": _share(sum(s.ok for s in scores), len(scores)),
        **{f"{prefix}fast@{p:g}": fast_p(scores, p) if scores else None for p in FAST_THRESHOLDS},
    }


def _pass_rates(groups: list[str], column: list[EvalSummary | None], prefix: str) -> Values:
    """Return pass@k of one turn, a mean over the groups with at least k verdicts."""
    by_group: dict[str, list[Score]] = defaultdict(list)
    for group, verdict in zip(groups, column, strict=True):
        if verdict and (score := score_of(verdict)):
            by_group[group].append(score)
    rates = {
        k: [pass_at_k(len(g), sum(s.ok for s in g), k) for g in by_group.values() if len(g) >= k]
        for k in PASS_COUNTS
    }
    return {f"{prefix}pass@{k}": statistics.fmean(found) for k, found in rates.items() if found}


def _advantages(advantages: Masked) -> Values:
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


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
