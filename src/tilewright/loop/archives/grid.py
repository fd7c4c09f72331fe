"""Islands of MAP-Elites grids with a list of elites, as OpenEvolve 0.4.1 keeps its programs.

Each island has a grid, and each cell of it keeps one owner: a fitter program takes the cell, and
the former owner leaves. A program that gets no cell still lives on its island. The fittest members
migrate to the two neighbours on a ring of islands, as copies (Mouret and Clune 2015, "Illuminating
Search Spaces by Mapping Elites").

The rules are those of `openevolve/database.py`, version 0.4.1, without its checks for states that
cannot occur. Its sets keep the order of insertion here. `tests/golden/originals` holds its traces.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from heapq import nsmallest

from tilewright.loop.archives.grid_features import Cell, Features
from tilewright.loop.archives.grid_members import Draw, GridRules, Member, fitness_of

Names = dict[str, None]
"""A set of names in the order of insertion."""


class Grid:
    """Members by name, on islands. Lifetime: one run; replay rebuilds it."""

    def __init__(self, rules: GridRules) -> None:
        self.rules = rules
        self.features = Features(rules)
        self.members: dict[str, Member] = {}
        """All members in the order of admission."""
        self.fitness: dict[str, float] = {}
        self.islands: list[Names] = [{} for _ in range(rules.islands)]
        self.cells: list[dict[Cell, str]] = [{} for _ in range(rules.islands)]
        """The owner of each cell of each island."""
        self.elites: Names = {}
        self.best = ""
        """The fittest member; of equal ones the first. It never leaves."""
        self.island_bests: list[str] = [""] * rules.islands
        """The fittest member of each island; empty if none is known."""
        self.generations = [0] * rules.islands
        """Programs that were written for each island."""
        self._last_migration = 0
        self._copies = 0

    def admit(self, member: Member, island: int, draw: Draw) -> None:
        """Put a new member on an island; others may leave."""
        self._put(replace(member, island=island))
        cell = self.features.cell(self.members[member.name], self.members.values(), draw)
        grid, name = self.cells[island], member.name
        owner = grid.get(cell)
        taken = owner is None or self.is_fitter(name, owner)
        if taken:
            if owner is not None:
                if owner in self.elites:
                    del self.elites[owner]
                    self.elites[name] = None
                del self.islands[island][owner]
            grid[cell] = name
        self.islands[island][name] = None
        self._enter_elites(name)
        if not self.best or self.is_fitter(name, self.best):
            self.best = name
        self._compare_with_island_best(name, island)
        if taken and owner is not None:
            self._remove([owner])
        self._trim(name)

    def is_fitter(self, name: str, other: str) -> bool:
        """Return whether a member is fitter than another one; of equal ones neither is."""
        return self.fitness[name] > self.fitness[other]

    def fittest(self, names: Iterable[str]) -> list[str]:
        """Return names by falling fitness; of equal ones the one that is named first."""
        return sorted(names, key=lambda name: -self.fitness[name])

    def copy_best(self, island: int) -> Member:
        """Put a copy of the fittest member on an empty island, in no cell; return the copy."""
        best = self.members[self.best]
        copy = replace(best, name=self._copy_name(), island=island, migrant=False)
        self._put(copy)
        self.islands[island][copy.name] = None
        return copy

    def end_generation(self, island: int) -> None:
        """Count one more program of an island."""
        self.generations[island] += 1

    def migration_is_due(self) -> bool:
        """Return whether the busiest island wrote enough programs since the last migration."""
        return max(self.generations) - self._last_migration >= self.rules.migration_interval

    def migrate(self, draw: Draw) -> None:
        """Copy the fittest members of each island to its two neighbours on the ring.

        All migrants are chosen before the first one arrives. Copies never migrate, and no copy
        arrives where its code is present.
        """
        count = len(self.islands)
        if count == 1:
            return
        moves: list[tuple[str, int]] = []
        for island, names in enumerate(self.islands):
            own = [name for name in names if not self.members[name].migrant]
            most = max(1, int(len(own) * self.rules.migration_share))
            for name in self.fittest(own)[:most]:
                moves += [(name, (island + 1) % count), (name, (island - 1) % count)]
        for name, island in moves:
            self._send(name, island, draw)
        self._last_migration = max(self.generations)

    def _send(self, name: str, island: int, draw: Draw) -> None:
        # An earlier migrant of this round may have taken its place.
        migrant = self.members.get(name)
        if migrant is None:
            return
        codes = {self.members[other].code for other in self.islands[island]}
        if migrant.code not in codes:
            self.admit(replace(migrant, name=self._copy_name(), migrant=True), island, draw)

    def _copy_name(self) -> str:
        self._copies += 1
        return f"copy{self._copies}"

    def _put(self, member: Member) -> None:
        self.members[member.name] = member
        self.fitness[member.name] = fitness_of(member.metrics, self.rules.dimensions)

    def _enter_elites(self, name: str) -> None:
        if len(self.elites) < self.rules.elites:
            self.elites.setdefault(name)
            return
        # `min` keeps the first of equal ones.
        worst = min(self.elites, key=self.fitness.__getitem__)
        if self.is_fitter(name, worst):
            # A member that took an elite's place in the list is there already. The worst one
            # leaves all the same, and the list is one shorter, as in the original.
            del self.elites[worst]
            self.elites.setdefault(name)

    def _compare_with_island_best(self, name: str, island: int) -> None:
        best = self.island_bests[island]
        if not best:
            self.island_bests[island] = name
        elif best not in self.islands[island]:
            self._find_island_bests()
        elif self.is_fitter(name, best):
            self.island_bests[island] = name

    def _find_island_bests(self) -> None:
        """Find the best members anew, if one of them left its island."""
        gone = [
            island
            for island, best in enumerate(self.island_bests)
            if best and best not in self.islands[island]
        ]
        for island in gone:
            self.island_bests[island] = ""
        for island, names in enumerate(self.islands):
            if gone and names and not self.island_bests[island]:
                # `max` keeps the first of equal ones.
                self.island_bests[island] = max(names, key=self.fitness.__getitem__)

    def _trim(self, newest: str) -> None:
        """Remove the least fit members above the limit: first those without a cell.

        Neither the best member nor the newest one leaves.
        """
        surplus = len(self.members) - self.rules.population
        if surplus <= 0:
            return
        owners = {name for grid in self.cells for name in grid.values()}
        left = [name for name in self.members if name not in (self.best, newest)]
        # As sorted(...)[:surplus], of equal ones the first; the surplus is small.
        worst = nsmallest(surplus, left, key=lambda name: (name in owners, self.fitness[name]))
        self._remove(worst)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            member = self.members.pop(name)
            self.features.forget(name)
            del self.fitness[name]
            self.islands[member.island].pop(name, None)
            self.elites.pop(name, None)
            grid = self.cells[member.island]
            for cell in [cell for cell, owner in grid.items() if owner == name]:
                del grid[cell]
        self._find_island_bests()
