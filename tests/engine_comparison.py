"""How two results of the golden test of engines differ."""

from __future__ import annotations

import numpy as np

EXACT, LOSS, COSINE, NORM = 1e-9, 1e-6, 0.99999, 1e-4
"""Most difference of advantages and weights; of the loss, relative; least cosine of the gradient;
most difference of its norm, relative."""
FIGURE = 1e-4
"""Most relative difference of a figure of a step between the engines."""
FLOAT32 = 1e-6
"""Most difference of a reward, which verl keeps in float32. No advantage is computed from it."""


def loops_document(case: dict, batch: dict) -> dict:
    """Return a result of the loops in the form of that of an engine."""
    turns = {
        (b, t): turn
        for b, item in enumerate(batch["trajectories"])
        for t, turn in enumerate(item["turns"])
        if turn is not None
    }

    def key(at: tuple[int, int]) -> str:
        return f"{at[0]},{at[1]}"

    masks = {key(at): [int(at in case["kept"])] * len(turn["reply"]) for at, turn in turns.items()}
    return {
        "rewards": {key(at): case["rewards"][at] for at in turns
                    if case["rewards"][at] is not None},
        "advantages": {key(at): value for at, value in case["advantages"].items()},
        "weights": {key(at): case["weights"].get(at, 0.0) for at in turns},
        "masks": masks,
        "loss_masks": masks,
        "padding": 0,
        "loss": case["loss"],
        "grads": {name: grad.flatten().tolist() for name, grad in case["grads"].items()},
    }  # fmt: skip


def differences(found: dict, wanted: dict) -> list[str]:
    """Return the names of the parts that differ by more than the golden test allows."""
    if "refused" in found:
        return [f"refused: {found['refused']}"]
    exact = ("masks", "loss_masks", "padding")
    parts = [name for name in exact if found[name] != wanted[name]]
    for name, most in (("rewards", FLOAT32), ("advantages", EXACT), ("weights", EXACT)):
        mine, other = found[name], wanted[name]
        if mine.keys() != other.keys() or any(abs(mine[k] - other[k]) > most for k in mine):
            parts.append(name)
    if abs(found["loss"] - wanted["loss"]) > LOSS * max(abs(wanted["loss"]), 1e-12):
        parts.append("loss")
    if "figures" in wanted and not same_figures(found["figures"], wanted["figures"]):
        parts.append("figures")
    cosine, norm = gradient_agreement(found["grads"], wanted["grads"])
    if not cosine > COSINE:
        parts.append("direction of the gradient")
    if not norm < NORM:
        parts.append("norm of the gradient")
    return parts


def same_figures(found: dict, wanted: dict) -> bool:
    """Tell whether two steps have one table of figures, but for the rounding of float32."""
    return found.keys() == wanted.keys() and all(
        (found[name] is None) == (wanted[name] is None)
        and abs((found[name] or 0.0) - (wanted[name] or 0.0))
        <= max(FLOAT32, FIGURE * abs(wanted[name] or 0.0))
        for name in wanted
    )


def gradient_agreement(found: dict, wanted: dict) -> tuple[float, float]:
    """Return the cosine of two gradients, and the relative difference of their norms."""
    assert found.keys() == wanted.keys()
    mine, other = (np.concatenate([np.asarray(g[name]) for name in sorted(g)])
                   for g in (found, wanted))  # fmt: skip
    norms = float(np.linalg.norm(mine)), float(np.linalg.norm(other))
    cosine = float(mine @ other) / max(norms[0] * norms[1], 1e-300)
    return cosine, abs(norms[0] - norms[1]) / norms[1]
