"""Bars: training on a CPU. A tiny model learns, and estimators are unbiased and fast.

The task is SynthKernel-1 with the reward 1 + min(s, 20) / 10, whose best program is known. Times
include the load of other processes on this machine.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.bars import Bar
from tilewright.loop.prompts.material import Material
from tilewright.records.event_log import read_events
from tilewright.records.events import Stepped
from tilewright.rl.advantages import group_mean, leave_one_out
from tilewright.rl.coverage_sampling import uniforms
from tilewright.rl.estimator import TurnVerdicts, estimate_rows, estimate_turns
from tilewright.rl.loss import row_weights
from tilewright.rl.masked_tensors import Masked
from tilewright.rl.presets import PAPER
from tilewright.rl.training_config import TrainConfig, load_training
from tilewright.testing.synth_world import conversations

SEEDS = 5
STEPS, LAST = 20, 3
TOY = f"""
world: synth
preset: tilewright
overrides:
  reward: {{speed: 0.1, max_speedup: 20}}
  sampling: {{prompts: 4, rollouts: 16, turns: 1, context_tokens: 128, reply_tokens: 32}}
  optimizer: {{learning_rate: 0.003, steps: {STEPS}}}
  loss: {{scale: 10}}
  sft: {{learning_rate: 0.01, batch: 32, epochs: 4}}
model:
  from_scratch: {{hidden: 64, layers: 2, heads: 4, positions: 256, vocabulary: 512}}
data: {{problems: synth}}
machine: {{train_batch_size: 64, sampling_batch_size: 64, threads: 1}}
checkpoints: {{every: 1000}}
"""
MAX_S = 300.0
"""Most seconds of a cold start and the RL after it."""
MAX_ESTIMATOR_S = 0.3
"""Most seconds of the estimator over 768 rows of 8,192 tokens."""
MAX_DIFFERENCE = 1e-4
"""Largest difference of log-probabilities between sampler and trainer, in fp32."""
T_FOUR = 2.776
"""Student's t quantile (95 %, 4 d.f.) for the five differences of paired seeds."""
ARMS = torch.tensor([0.0, 1.0, 2.5], dtype=torch.float64)
"""Rewards of the three arms of the enumeration."""
PROBABILITIES = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
Advantage = Callable[[Masked, Tensor], Masked]


def trloo(returns: Masked, group: Tensor) -> Masked:
    """Return advantages of equation 5; a single rollout gets none."""
    return leave_one_out(returns, group, singleton_advantage="none")


def grpo(returns: Masked, group: Tensor) -> Masked:
    """Return advantages of equation 3."""
    return group_mean(returns, group)


ESTIMATORS: dict[str, Advantage] = {"trloo": trloo, "grpo": grpo}


def run(match: str = "") -> list[Bar]:
    """Run the bars whose name contains `match`."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parts: dict[str, Callable[[], list[Bar]]] = {
        "speed": _speed,
        "unbiased": _unbiased,
        "masks": _masks,
        "learns": _learns,
    }
    return [bar for name, part in parts.items() if match in name for bar in part()]


def _speed() -> list[Bar]:
    torch.set_num_threads(2)
    b, t, wide = 256, 3, 8192
    torch.manual_seed(0)
    before = -torch.rand(b, t, wide)
    sampler = before + 1e-5 * torch.randn(b, t, wide)
    lengths = torch.randint(1000, wide, (b, t, 1))
    generated = torch.arange(wide) < lengths
    found = []
    for _ in range(7):
        start = time.perf_counter()
        turns = TurnVerdicts(
            prompts=torch.arange(b) // 16,
            present=torch.ones(b, t, dtype=torch.bool),
            rewards=Masked(torch.rand(b, t), torch.ones(b, t, dtype=torch.bool)),
            eligible=torch.rand(b, t) < 0.5,
            coverage=Masked(torch.rand(b, t), torch.ones(b, t, dtype=torch.bool)),
            uniforms=uniforms(0, [(f"p{n // 16}.0", n % 16) for n in range(b)], t),
        )
        estimate = estimate_turns(turns, PAPER)
        estimate_rows(estimate, before, sampler, generated, PAPER)
        found.append(time.perf_counter() - start)
    seen = statistics.median(found)
    text = f"{seen:.3f} s (median of {len(found)}; the machine may be shared)"
    wanted = f"at most {MAX_ESTIMATOR_S} s"
    return [Bar("train: estimator of 768 rows of 8,192", wanted, text, seen <= MAX_ESTIMATOR_S)]


def _score_functions(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return all samples of `count` arms, (3^N, N), their probabilities, grad log pi (3, 3)."""
    samples = torch.tensor(list(itertools.product(range(3), repeat=count)))
    probabilities = PROBABILITIES[samples].prod(-1)
    return samples, probabilities, torch.eye(3, dtype=torch.float64) - PROBABILITIES


def _true_gradient() -> Tensor:
    return PROBABILITIES * (ARMS - (PROBABILITIES * ARMS).sum())


def _along(found: Tensor) -> tuple[float, float]:
    """Return the projection on the true gradient, and the rest, both relative to its norm."""
    true = _true_gradient()
    along = float(found @ true / (true @ true))
    return along, float((found - along * true).norm() / true.norm())


def _unbiased() -> list[Bar]:
    bars = []
    for count in (2, 4, 6):
        samples, probabilities, scores = _score_functions(count)
        returns = ARMS[samples]
        group = torch.arange(len(samples))[:, None].expand_as(samples)
        for name, advantage in ESTIMATORS.items():
            found = advantage(Masked(returns, torch.ones_like(returns, dtype=torch.bool)), group)
            each = (found.values[..., None] * scores[samples]).mean(1)
            along, off = _along((probabilities[:, None] * each).sum(0))
            wanted = 1.0 if name == "trloo" else 1.0 - 1.0 / count
            held = abs(along - wanted) < 1e-9 and off < 1e-9
            text = f"{along:.12f}, off direction {off:.1e}"
            bars.append(Bar(f"train: E[{name}] / grad J, N = {count}", f"{wanted:.9f}", text, held))
    return bars


def _masked_mean(
    advantage: Advantage, count: int, valid: Tensor, kept: Tensor, denominator: str
) -> tuple[float, float]:
    """Return projection and off-direction norm under masks, over all samples and masks.

    Args:
        advantage: from returns to advantages.
        count: rollouts of a group.
        valid: probability of each arm that its return is known; others leave the baseline too.
        kept: probability of each arm to stay in the loss; others stay in the baseline.
        denominator: `kept` or `planned`.
    """
    samples, probabilities, scores = _score_functions(count)
    total = torch.zeros(3, dtype=torch.float64)
    states = list(itertools.product((0, 1, 2), repeat=count))
    for state in states:
        status = torch.tensor(state)
        # 0: not known; 1: known and dropped; 2: known and kept.
        odds = torch.stack([1 - valid, valid * (1 - kept), valid * kept])
        weight = probabilities * odds[status, samples].prod(-1)
        known = (status > 0).expand_as(samples)
        group = torch.arange(len(samples))[:, None].expand_as(samples)
        found = advantage(Masked(ARMS[samples], known), group)
        learned = found.known & (status == 2)
        ones = torch.ones(count, dtype=torch.int64)
        left = learned[0].long()
        if not bool(left.any()):
            continue
        rows = row_weights(
            ones,
            left,
            denominator="kept" if denominator == "kept" else "planned",
            scale=1.0,
            planned=count if denominator == "planned" else None,
        )
        each = (found.values * rows)[..., None] * scores[samples]
        total += (weight[:, None] * each.sum(1)).sum(0)
    return _along(total)


def _masks() -> list[Bar]:
    """Return the mean of each estimator under masks; only independent masks are a promise."""
    even, uneven = torch.full((3,), 0.7, dtype=torch.float64), torch.tensor([0.9, 0.7, 0.4])
    ones = torch.ones(3, dtype=torch.float64)
    cases = {
        "random N_t": (even, ones),
        "random N_t and masks": (even, even),
        "masks that depend on the reward": (ones, uneven.double()),
        "N_t that depends on the reward": (uneven.double(), ones),
    }
    bars = []
    for case, (valid, kept) in cases.items():
        for name, advantage in ESTIMATORS.items():
            for denominator in ("planned", "kept"):
                seen = [_masked_mean(advantage, n, valid, kept, denominator) for n in (2, 4)]
                text = "; ".join(f"{along:.3f} off {off:.3f}" for along, off in seen)
                label = f"train: {name}, {case}, over {denominator}, N = 2 and 4"
                # Probabilities that depend on no reward only scale the gradient.
                free = case.startswith("random") and denominator == "planned"
                held = not free or all(off < 1e-9 for _, off in seen)
                wanted = "no other direction" if free else "printed"
                bars.append(Bar(label, wanted, f"projection {text}", held))
    return bars


def _settings(folder: Path, seed: int, estimator: str) -> TrainConfig:
    path = folder / "toy.yaml"
    path.write_text(TOY, encoding="utf-8")
    rows = "".join(json.dumps(row) + "\n" for row in conversations(1024, 1, seed))
    (folder / "sft.jsonl").write_text(rows, encoding="utf-8")
    return load_training(
        path,
        [
            f"seed={seed}",
            f"data.conversations=[{folder / 'sft.jsonl'}]",
            f"overrides.advantage.estimator={estimator}",
            f"model.path={folder / 'sft' / 'model'}" if estimator != "none" else "seed=0",
        ],
    )


def _figures(folder: Path) -> list[dict[str, Any]]:
    return [event.figures for event in read_events(folder) if isinstance(event, Stepped)]


def _silent(*_: object) -> None:
    """Ignore progress."""


def _learns() -> list[Bar]:
    from tilewright.rl.engines.trl.reinforce import train_rl
    from tilewright.rl.engines.trl.sft import train_sft

    gains: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    ends: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    seconds, apart = [], 0.0
    bars = []
    for seed in range(SEEDS):
        folder = Path(tempfile.mkdtemp(prefix="tilewright-train-"))
        start = time.monotonic()
        settings = _settings(folder, seed, "trloo")
        cold = settings.model_copy(update={"model": settings.model.model_copy(update={"path": ""})})
        (folder / "sft").mkdir()
        train_sft(cold, folder / "sft", _silent)
        before = time.monotonic() - start
        for name in ESTIMATORS:
            start = time.monotonic()
            out = folder / name
            out.mkdir()
            train_rl(_settings(folder, seed, name), out, _silent, _silent)
            seconds.append(before + time.monotonic() - start)
            figures = _figures(out)
            first = figures[0]["reward"]
            last = statistics.fmean(item["reward"] for item in figures[-LAST:])
            gains[name].append(last - first)
            ends[name].append(last)
            apart = max(apart, *(item["mismatch/most_log"] for item in figures))
            print(
                f"seed {seed}, {name}: reward {first:.2f} to {last:.2f} in {STEPS} steps, "
                f"{seconds[-1]:.0f} s with the cold start",
                flush=True,
            )
        if seed == 0:
            bars += _frozen(folder)
    return [*_bars(gains, ends, seconds, apart), *bars]


def _bars(
    gains: dict[str, list[float]],
    ends: dict[str, list[float]],
    seconds: list[float],
    apart: float,
) -> list[Bar]:
    bars = []
    for name, found in gains.items():
        better = sum(gain > 0 for gain in found)
        text = f"{better} of {SEEDS}: {', '.join(f'{gain:+.2f}' for gain in found)}"
        bars.append(Bar(f"train: {name} raises the mean reward", "5 of 5", text, better == SEEDS))
    text = f"{max(seconds):.0f} s (the machine may be shared)"
    bars.append(Bar("train: cold start and RL", f"under {MAX_S:.0f} s", text, max(seconds) < MAX_S))
    wanted = f"under {MAX_DIFFERENCE:g}"
    bars.append(
        Bar("train: sampler against trainer, fp32", wanted, f"{apart:.1e}", apart < MAX_DIFFERENCE)
    )
    gaps = [a - b for a, b in zip(ends["trloo"], ends["grpo"], strict=True)]
    error = statistics.stdev(gaps) / math.sqrt(SEEDS)
    text = f"{statistics.fmean(gaps):+.3f} +- {T_FOUR * error:.3f} at the end, {SEEDS} paired seeds"
    spread = statistics.stdev(ends["grpo"])
    held = abs(statistics.fmean(gaps)) <= max(T_FOUR * error, spread)
    wanted = "within seed noise (equal N, AdamW)"
    return [*bars, Bar("train: TRLOO against mean GRPO", wanted, text, held)]


def _frozen(folder: Path, rollouts: int = 512) -> list[Bar]:
    """Compare gradients of both estimators at the model of a cold start, on the same rollouts."""
    grads, rewards = _rollout_gradients(folder, rollouts)
    whole = torch.zeros(rollouts, dtype=torch.int64)
    known = torch.ones(rollouts, dtype=torch.bool)
    best = (trloo(Masked(rewards, known), whole).values[:, None] * grads).mean(0)
    bars = []
    for count in (2, 4, 8, 16):
        group = torch.arange(rollouts) // count
        seen = {}
        for name, advantage in ESTIMATORS.items():
            values = advantage(Masked(rewards, known), group).values[:, None]
            each = (values * grads).reshape(-1, count, grads.shape[1]).mean(1)
            spread = float((each - each.mean(0)).square().sum(1).mean() * count)
            seen[name] = float(each.mean(0) @ best / (best @ best)), spread
        ratio = seen["grpo"][0] / seen["trloo"][0]
        shrunk = seen["grpo"][1] / seen["trloo"][1]
        text = "; ".join(
            f"{name} projection {along:.3f}, variance a rollout {spread:.3g}"
            for name, (along, spread) in seen.items()
        )
        held = abs(ratio - (1 - 1 / count)) < 1e-6 and abs(shrunk - (1 - 1 / count) ** 2) < 1e-6
        wanted = f"grpo / trloo {1 - 1 / count:g}, its square in variance"
        bars.append(Bar(f"train: gradient at a frozen model, N = {count}", wanted, text, held))
    return bars


def _rollout_gradients(folder: Path, rollouts: int) -> tuple[Tensor, Tensor]:
    """Return grad log pi of each reply, (R, P) over one layer's weights, and rewards, (R,)."""
    from contextlib import nullcontext

    from tilewright.rl.engines.trl import models
    from tilewright.rl.engines.trl.sampler import TransformersSampler
    from tilewright.rl.masked_tensors import zero_filled
    from tilewright.rl.presets import SamplingSection, TurnRewardSection
    from tilewright.rl.rewards.turn_reward import JudgedTurn
    from tilewright.rl.training_rows import rewards_of
    from tilewright.testing.synth import judge
    from tilewright.testing.synth_world import SynthWorld

    path = str(folder / "sft" / "model")
    model, tokenizer = models.load_model(path), models.load_tokenizer(path)
    sampler = TransformersSampler(
        model, tokenizer, batch_size=128, lease=None, precision=nullcontext, name="frozen"
    )
    world = SynthWorld()
    prompt = sampler.encode(world.prompt(Material(world.problems("synth")[0])))
    sampled = sampler.sample(
        [prompt] * rollouts, "frozen", SamplingSection(context_tokens=128, reply_tokens=32)
    )
    section = TurnRewardSection(speed=0.1, max_speedup=20, coverage=0)
    verdicts = [[JudgedTurn(judge(sampler.decode(item.reply))) for item in sampled]]
    rewards = zero_filled(rewards_of(verdicts, section))[0].tolist()
    weights = list(model.model.layers[-1].mlp.parameters())
    found = []
    for item in sampled:
        ids = torch.tensor([item.prompt + item.reply])
        logits = model(input_ids=ids).logits[0, len(item.prompt) - 1 : -1].log_softmax(-1)
        score = logits.gather(-1, torch.tensor(item.reply)[:, None]).sum()
        grads = torch.autograd.grad(score, weights)
        found.append(torch.cat([grad.flatten() for grad in grads]))
    return torch.stack(found).double(), torch.tensor(rewards, dtype=torch.float64)
