"""Classifiers that guess from figures of a call whether it enters the ratio.

Logistic regression and boosted stumps, both with weights that make the two classes equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
STEPS, RATE, PENALTY = 300, 0.5, 0.1
"""Steps of the regression's descent, their length, and the weight of its squared coefficients."""
STUMPS, SHRINKAGE, CUTS = 60, 0.3, 15
"""Stumps of the ensemble, the share of each that counts, and thresholds of a feature that are
tried."""
LIMIT = 5.0
"""Standard deviations at which a feature is cut."""
SPLITS = 4
"""Random halves of the calls."""


@dataclass(frozen=True)
class Score:
    """How well a classifier told calls apart that it had not seen."""

    name: str
    balanced: float
    """Mean of the shares of both classes that it named right; 0.5 is a guess."""
    strongest: tuple[str, ...]


def scores(values: Matrix, truth: Mask, order: Matrix, names: list[str]) -> Iterator[Score]:
    """Yield the score of both classifiers on a split by time, and on random halves.

    `order` is the place of each call within its process, from 0 to 1. Every half is trained on once
    and tested once.
    """
    changing = values.std(axis=0) > 0
    values, names = values[:, changing], [names[i] for i in np.flatnonzero(changing)]
    early = order < np.median(order)
    halves = {"by time": [early, ~early]}
    random = np.random.default_rng(7)
    halves["random"] = []
    for _ in range(SPLITS):
        chosen = random.permutation(len(truth)) < len(truth) // 2
        halves["random"] += [chosen, ~chosen]
    for split, parts in halves.items():
        for kind, classifier in (("regression", _regression), ("stumps", _stumps)):
            found, weights = [], np.zeros(len(names))
            for part in parts:
                known, other = _scaled(values, part)
                guess, used = classifier(known, truth[part], other)
                found.append(balanced_accuracy(guess, truth[~part]))
                weights += used / len(parts)
            strongest = [f"{names[i]} {weights[i]:.2f}" for i in np.argsort(-weights)[:5]]
            yield Score(f"{kind}, {split}", float(np.mean(found)), tuple(strongest))


def balanced_accuracy(guess: Mask, truth: Mask) -> float:
    """Return the mean of the shares of both classes that were named right."""
    return float((np.mean(guess[truth]) + np.mean(~guess[~truth])) / 2)


def _scaled(values: Matrix, part: Mask) -> tuple[Matrix, Matrix]:
    mean, deviation = values[part].mean(axis=0), values[part].std(axis=0)
    scaled = (values - mean) / np.where(deviation > 0, deviation, 1.0)
    scaled = np.clip(scaled, -LIMIT, LIMIT)
    return scaled[part], scaled[~part]


def _class_weights(truth: Mask) -> Matrix:
    weights = np.where(truth, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))
    return np.asarray(weights / len(truth), dtype=np.float64)


def _regression(known: Matrix, truth: Mask, other: Matrix) -> tuple[Mask, Matrix]:
    weights, slopes, level = _class_weights(truth), np.zeros(known.shape[1]), 0.0
    for _ in range(STEPS):
        wrong = weights * (1 / (1 + np.exp(-(known @ slopes + level))) - truth)
        slopes -= RATE * (known.T @ wrong + PENALTY * slopes)
        level -= RATE * wrong.sum()
    return other @ slopes + level > 0, np.abs(slopes)


def _stumps(known: Matrix, truth: Mask, other: Matrix) -> tuple[Mask, Matrix]:
    """Return the guesses of stumps, each of which corrects those before it."""
    weights, sign = _class_weights(truth), np.where(truth, 1.0, -1.0)
    total, used = np.zeros(len(other)), np.zeros(known.shape[1])
    cuts = np.quantile(known, np.linspace(0, 1, CUTS + 2)[1:-1], axis=0)
    above = known[None] > cuts[:, None]
    for _ in range(STUMPS):
        signed = weights * sign
        gains = 2 * np.einsum("i,cif->cf", signed, above) - signed.sum()
        cut, feature = np.unravel_index(np.argmax(np.abs(gains)), gains.shape)
        edge = float(np.clip(gains[cut, feature] / weights.sum(), -0.99, 0.99))
        size = SHRINKAGE * 0.5 * np.log((1 + edge) / (1 - edge))
        weights = weights * np.exp(-size * sign * np.where(above[cut, :, feature], 1.0, -1.0))
        total += size * np.where(other[:, feature] > cuts[cut, feature], 1.0, -1.0)
        used[feature] += abs(size)
    return total > 0, used
