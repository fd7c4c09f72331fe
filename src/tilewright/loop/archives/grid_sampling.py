"""Parents and inspirations from a grid of islands (OpenEvolve 0.4.1, `sample_from_island`).

A parent is drawn in one of three ways: all members of the island alike, an elite, or by fitness.
Inspirations are other members of the island: its fittest ones, and some from cells nearby.
Sampling widens the bounds of the features, since it computes cells anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.loop.archives.grid import Grid
from tilewright.loop.archives.grid_features import Cell, near
from tilewright.loop.archives.grid_members import Draw, Member, total

MIN_WEIGHT = 0.001
"""Least weight in a draw by fitness: a member of fitness 0 can still become a parent."""
REACH = 2
"""Most steps along a dimension to a nearby cell."""
TRIES = 3
"""Draws of nearby cells for each inspiration that is missing."""


@dataclass(frozen=True)
class ChosenParent:
    """A parent, and other programs for the same prompt."""

    parent: Member
    inspirations: tuple[Member, ...]


def sample_island(grid: Grid, island: int, count: int, draw: Draw) -> ChosenParent:
    """Return a parent for a program of an island, and at most `count` inspirations from it.

    An island without members takes both from elsewhere. The grid needs at least one member.
    """
    names = list(grid.islands[island])
    if not names:
        return sample_any(grid, 0, count, draw)
    mark = draw("mode").random()
    if mark < grid.rules.explore:
        parent = draw("parent").choice(names)
    elif mark < grid.rules.explore + grid.rules.exploit and grid.elites:
        parent = draw("parent").choice(_elites(grid, island))
    else:
        parent = _by_fitness(grid, names, draw)
    return _with_inspirations(grid, parent, island, count, draw)


def sample_any(grid: Grid, island: int, count: int, draw: Draw) -> ChosenParent:
    """Return a parent from a preferred island or elsewhere, and inspirations from its island.

    If the preferred island is empty, a draw from its members puts a copy of the best there.
    """
    mark = draw("mode").random()
    exploits = grid.rules.explore <= mark < grid.rules.explore + grid.rules.exploit
    if mark < grid.rules.explore or (exploits and not grid.elites):
        names = list(grid.islands[island])
        parent = draw("parent").choice(names) if names else grid.copy_best(island).name
    elif exploits:
        parent = draw("parent").choice(_elites(grid, island))
    else:
        parent = draw("parent").choice(list(grid.members))
    return _with_inspirations(grid, parent, grid.members[parent].island, count, draw)


def _elites(grid: Grid, island: int) -> list[str]:
    """Return the elites of an island, or all elites if it has none."""
    own = [name for name in grid.elites if grid.members[name].island == island]
    return own or list(grid.elites)


def _by_fitness(grid: Grid, names: list[str], draw: Draw) -> str:
    if len(names) == 1:
        return names[0]
    weights = [max(grid.fitness[name], MIN_WEIGHT) for name in names]
    whole = total(weights)
    shares = [weight / whole for weight in weights]
    return draw("parent").choices(names, weights=shares, k=1)[0]


def _with_inspirations(
    grid: Grid, parent: str, island: int, count: int, draw: Draw
) -> ChosenParent:
    names = list(grid.islands[island])
    best = grid.island_bests[island]
    found = [best] if best and best != parent else []
    for name in grid.fittest(names)[: max(1, int(count * grid.rules.elite_share))]:
        if name not in found and name != parent:
            found.append(name)
    if len(found) < count:
        found += _nearby(grid, parent, names, found, count - len(found), draw)
    return ChosenParent(grid.members[parent], tuple(grid.members[name] for name in found[:count]))


def _nearby(
    grid: Grid, parent: str, names: list[str], found: list[str], missing: int, draw: Draw
) -> list[str]:
    """Return members from cells near the parent's, then any others of the island."""
    center = _cell(grid, parent, draw)
    # Cells as of now, since bounds widen. Of several members in a cell the last one counts.
    owners = {_cell(grid, name, draw): name for name in names}
    excluded = {parent, *found}
    nearby: list[str] = []
    steps = draw("nearby cells")
    for _ in range(missing * TRIES):
        moved = [steps.randint(-REACH, REACH) for _ in center]
        name = owners.get(near(center, moved, grid.features.bins), "")
        if name and name not in excluded:
            excluded.add(name)
            nearby.append(name)
            if len(nearby) == missing:
                return nearby
    left = [name for name in names if name not in excluded]
    if not left:
        return nearby
    return nearby + draw("others").sample(left, min(missing - len(nearby), len(left)))


def _cell(grid: Grid, name: str, draw: Draw) -> Cell:
    return grid.features.cell(grid.members[name], grid.members.values(), draw)
