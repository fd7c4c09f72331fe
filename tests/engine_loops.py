"""The estimator of Dr. Kernel in plain loops, for the golden test of engines.

It imports nothing of tilewright: it shares no mistake with the code that it checks. Settings are
those of the paper and the released code (arXiv 2602.05885), and of docs/reference/presets.md.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import torch

from tests.engine_model import logprobs, movement, tiny_model

BATCH = Path(__file__).parent / "golden" / "engines" / "batch.json"
PRESETS = {
    "paper": {
        "reward": (1.0, 1.0, 1.0, "speedup"), "lone": "return", "unjudged": "earlier",
        "filters": False, "over": "generated",
    },
    "released_code": {
        "reward": (0.5, 0.5, 0.5, "speedup"), "lone": "return", "unjudged": "trajectory",
        "filters": True, "over": "learnable",
    },
    "tilewright": {
        "reward": (1.0, 1.0, 0.0, "low"), "lone": "none", "unjudged": "earlier",
        "filters": False, "over": "generated",
    },
}  # fmt: skip
MAX_SPEEDUP, SCALE, LOW, HIGH, VETO = 3.0, 1000.0, 0.999, 1.001, 1e-4
CLIP_LOW, CLIP_HIGH, DUAL = 0.2, 0.28, 3.0


def load() -> dict:
    return json.loads(BATCH.read_text(encoding="utf-8"))


def reward(turn: dict, weights: tuple) -> float | None:
    if turn["verdict"] == "unjudged":
        return None
    if turn["verdict"] != "correct":
        return 0.0
    correct, speed, coverage, which = weights
    return correct + speed * min(turn[which], MAX_SPEEDUP) + coverage * turn["coverage"]


def uniform(seed: int, group: str, rollout: int, turn: int) -> float:
    name = f"seed={seed}|group={group}|rollout={rollout}|turn={turn}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") / 2**64


def dropped_by_filters(batch: dict, rewards: list, on: bool) -> set[tuple[int, int]]:
    """Return the turns that the filters of the released code drop."""
    found: set[tuple[int, int]] = set()
    if not on:
        return found
    for b, row in enumerate(rewards):
        paid = False
        for t, value in enumerate(row):
            if value is not None and value <= 0 and paid:
                found.add((b, t))
            paid = paid or (value is not None and value > 0)
    for group in sorted({item["group"] for item in batch["trajectories"]}):
        members = [b for b, item in enumerate(batch["trajectories"]) if item["group"] == group]
        last = []
        for b in members:
            turns = batch["trajectories"][b]["turns"]
            place = max(t for t, turn in enumerate(turns) if turn is not None)
            if rewards[b][place] is not None:
                last.append(rewards[b][place])
        if len(last) < len(members) // 2 + 1 or (len(last) > 1 and np.std(last, ddof=1) < 1e-3):
            found |= {(b, t) for b in members for t in range(batch["turns"])}
    return found


def returns_of(batch: dict, rewards: list, dropped: set, rule: str) -> dict:
    found = {}
    for b, item in enumerate(batch["trajectories"]):
        for t, turn in enumerate(item["turns"]):
            later = range(t, batch["turns"]) if rule == "earlier" else range(batch["turns"])
            whole = all(item["turns"][k] is None or rewards[b][k] is not None for k in later)
            if turn is not None and whole and (b, t) not in dropped:
                found[b, t] = sum(rewards[b][k] or 0.0 for k in range(t, batch["turns"]))
    return found


def advantages_of(batch: dict, returns: dict, lone: str) -> dict:
    found = {}
    for (b, t), value in returns.items():
        group = batch["trajectories"][b]["group"]
        others = [
            other
            for (c, u), other in returns.items()
            if u == t and c != b and batch["trajectories"][c]["group"] == group
        ]
        if others:
            found[b, t] = value - sum(others) / len(others)
        elif lone == "return":
            found[b, t] = value
    return found


def kept_by_coverage(batch: dict) -> set[tuple[int, int]]:
    found = set()
    for b, item in enumerate(batch["trajectories"]):
        for t, turn in enumerate(item["turns"]):
            if turn is None:
                continue
            chance = 1.0
            if turn["verdict"] == "correct" and turn["coverage"] is not None:
                chance = min(max((turn["coverage"] - 0.3) / 0.1, 0.0), 1.0)
            if uniform(batch["seed"], item["group"], item["rollout"], t) < chance:
                found.add((b, t))
    return found


def kept_by_mismatch(batch: dict, before: dict, counted: set) -> set[tuple[int, int]]:
    """Return the turns whose trajectory has a mean ratio in bounds, and no token below the veto."""
    found = set()
    for b, item in enumerate(batch["trajectories"]):
        logs = {}
        for t, turn in enumerate(item["turns"]):
            if (b, t) in counted:
                logs[t] = [float(p) - q for p, q in zip(before[b, t], turn["sampler"], strict=True)]
        every = [value for row in logs.values() for value in row]
        if not every:
            continue
        mean = sum(every) / len(every)
        for t, row in logs.items():
            if math.log(LOW) <= mean <= math.log(HIGH) and min(row) >= math.log(VETO):
                found.add((b, t))
    return found


def estimate(batch: dict, preset: str, denominator: str, before: dict) -> dict:
    """Return masks, advantages and weights by trajectory and turn."""
    chosen = PRESETS[preset]
    rewards = [
        [None if turn is None else reward(turn, chosen["reward"]) for turn in item["turns"]]
        for item in batch["trajectories"]
    ]
    dropped = dropped_by_filters(batch, rewards, chosen["filters"])
    regressed = [
        [0.0 if (b, t) in dropped and value is not None and value < 0 else value
         for t, value in enumerate(row)]
        for b, row in enumerate(rewards)
    ]  # fmt: skip
    returns = returns_of(batch, regressed, dropped, chosen["unjudged"])
    advantages = advantages_of(batch, returns, chosen["lone"])
    counted = set(before) if chosen["over"] == "generated" else set(returns)
    kept = kept_by_mismatch(batch, before, counted) & kept_by_coverage(batch) & set(advantages)
    rows = len(kept)
    if denominator == "planned":
        rows = len(batch["trajectories"]) * batch["turns"]
    return {
        "rewards": {(b, t): value for b, row in enumerate(rewards) for t, value in enumerate(row)},
        "advantages": advantages,
        "weights": dict.fromkeys(kept, 1.0 / (rows * SCALE)),
        "kept": kept,
    }


def loss_and_slopes(found: dict, before: dict, now: dict) -> tuple[float, dict, int]:
    """Return the loss, its derivative by each log-probability, and the dual clips."""
    loss, slopes, dual = 0.0, {}, 0
    for place in sorted(found["kept"]):
        gain, weight = found["advantages"][place], found["weights"][place]
        row = []
        for p, q in zip(now[place], before[place], strict=True):
            ratio = math.exp((p - q).item())
            clipped = min(max(ratio, 1.0 - CLIP_LOW), 1.0 + CLIP_HIGH)
            value = max(-ratio * gain, -clipped * gain)
            slope = -ratio * gain if -ratio * gain >= -clipped * gain else 0.0
            if gain < 0.0 and value > -DUAL * gain:
                value, slope, dual = -DUAL * gain, 0.0, dual + 1
            loss += weight * value
            row.append(weight * slope)
        slopes[place] = row
    return loss, slopes, dual


def turns_in(batch: dict) -> dict:
    return {
        (b, t): turn
        for b, item in enumerate(batch["trajectories"])
        for t, turn in enumerate(item["turns"])
        if turn is not None
    }


def results() -> dict:
    """Return what each engine must find, by preset and denominator."""
    batch, model = load(), tiny_model()
    turns = turns_in(batch)
    with torch.no_grad():
        before = {at: logprobs(model, row["prompt"], row["reply"]) for at, row in turns.items()}
        for name, weight in model.named_parameters():
            weight.add_(movement(name, tuple(weight.shape)))
    now = {at: logprobs(model, row["prompt"], row["reply"]) for at, row in turns.items()}
    found = {}
    for preset in PRESETS:
        for denominator in ("kept", "planned"):
            case = estimate(batch, preset, denominator, before)
            loss, slopes, dual = loss_and_slopes(case, before, now)
            model.zero_grad()
            total = sum(
                (now[at] * torch.tensor(row, dtype=torch.float64)).sum()
                for at, row in slopes.items()
            )
            total.backward(retain_graph=True)
            grads = {name: w.grad.double().numpy().copy() for name, w in model.named_parameters()}
            ratios = [math.exp((p - q).item()) for at in case["kept"]
                      for p, q in zip(now[at], before[at], strict=True)]  # fmt: skip
            found[preset, denominator] = case | {
                "loss": loss,
                "grads": grads,
                "ratios": ratios,
                "dual": dual,
            }
    return found
