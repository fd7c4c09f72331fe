"""Members of a grid of islands, the rules of the grid, and the fitness of a member.

The rules and their default values are those of OpenEvolve 0.4.1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Draw = Callable[[str], random.Random]
"""Returns the generator of one decision, by its purpose, for example `parent`."""
COMBINED = "combined_score"
"""The metric that is the fitness, if a member has it."""


@dataclass(frozen=True)
class GridRules:
    """Sizes and shares of the archive; default: the configuration of OpenEvolve 0.4.1."""

    islands: int = 5
    population: int = 1000
    """Most members of all islands together."""
    elites: int = 100
    """Most members of the elite list."""
    dimensions: tuple[str, ...] = ("complexity", "diversity")
    """Features of the cells: `complexity`, `diversity`, `score`, or the name of a metric."""
    bins: int = 10
    """Cells of each dimension, at the least; see `bins_per_dimension`."""
    explore: float = 0.2
    """Probability of a parent from the island, all equally likely."""
    exploit: float = 0.7
    """Probability of a parent from the elite list. The rest is drawn by fitness."""
    elite_share: float = 0.1
    """Share of the inspirations that are the island's fittest members; at least one is."""
    migration_interval: int = 50
    """Generations of the busiest island between two migrations."""
    migration_share: float = 0.1
    """Share of an island's members that migrate; at least one does."""
    references: int = 20
    """Programs that diversity is measured against."""
    known_diversities: int = 1000
    """Diversities that are kept. The oldest one is forgotten first, and computed anew."""

    def bins_per_dimension(self) -> int:
        """Return the number of cells of a dimension: the whole grid has room for all elites."""
        # 0.99 rounds the root up, as the original does it.
        return max(self.bins, int(self.elites ** (1 / len(self.dimensions)) + 0.99))


@dataclass(frozen=True)
class Member:
    """A program in the archive. A copy on another island is a member of its own."""

    name: str
    code: str
    metrics: Mapping[str, float]
    writer: str = ""
    """The request that wrote the code; equal for all copies."""
    island: int = 0
    migrant: bool = False
    """Whether it is a copy from another island, which never migrates again."""


def fitness_of(metrics: Mapping[str, float], dimensions: Iterable[str]) -> float:
    """Return `combined_score`, or else the mean of the metrics that are no feature."""
    if COMBINED in metrics:
        return metrics[COMBINED]
    features = set(dimensions)
    values = [value for name, value in metrics.items() if name not in features]
    values = values or list(metrics.values())
    return total(values) / len(values) if values else 0.0


def total(values: Iterable[float]) -> float:
    """Return the sum, rounded after each term: the built-in `sum` rounds once since Python 3.12.

    A search gives one log under all versions of Python.
    """
    result = 0.0
    for value in values:
        result += value
    return result
