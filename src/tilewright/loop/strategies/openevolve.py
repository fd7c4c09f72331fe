"""OpenEvolve: evolution on islands, each with a grid of different programs.

The archive, the draw of parents and the migration equal those of OpenEvolve 0.4.1
(https://github.com/codelion/openevolve, Apache-2.0), which re-implements AlphaEvolve
(arXiv 2506.13131). A prompt shows the parent, the fittest programs of its island, and some others.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tilewright.errors import ConfigError
from tilewright.loop.archives.grid import Grid
from tilewright.loop.archives.grid_members import COMBINED, Draw, GridRules, Member
from tilewright.loop.archives.grid_sampling import ChosenParent, sample_island
from tilewright.loop.candidate_text import code_of
from tilewright.loop.driver import Strategy
from tilewright.loop.random_values import chooser
from tilewright.loop.strategies.base import ArchiveCell, Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn

Feature = Literal["complexity", "diversity", "score"]


class IslandOptions(Options):
    """The archive, the draw of parents, and what a prompt shows; defaults of OpenEvolve 0.4.1."""

    islands: int = Field(default=5, ge=1)
    population: int = Field(default=1000, ge=2)
    """Most programs of all islands together."""
    elites: int = Field(default=100, ge=1)
    """Most programs of the elite list."""
    features: tuple[Feature, ...] = Field(default=("complexity", "diversity"), min_length=1)
    """Dimensions of the grids. Users report worse results with `score` (openevolve#152)."""
    bins: int = Field(default=10, ge=1)
    """Cells of each dimension, at the least."""
    references: int = Field(default=20, ge=1)
    """Programs that diversity is measured against."""
    explore: float = Field(default=0.2, ge=0, le=1)
    """Probability of a parent from the island, all equally likely."""
    exploit: float = Field(default=0.7, ge=0, le=1)
    """Probability of an elite as parent. The remaining parents are drawn by fitness."""
    elite_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the inspirations that are the fittest of the island; at least one is."""
    migration_interval: int = Field(default=50, ge=1)
    """Programs of one island between two migrations."""
    migration_share: float = Field(default=0.1, ge=0, le=1)
    """Share of an island that migrates; at least one program does."""
    top: int = Field(default=3, ge=1)
    """Fittest programs that a prompt shows."""
    diverse: int = Field(default=2, ge=0)
    """Programs of the next ranks that a prompt shows, and as many inspirations."""
    lineage: Literal["requested", "parent"] = "requested"
    """Island of a child: that of its request, as in the controller of 0.4.1, or that of its parent,
    as in earlier versions. They differ if the parent is an elite of another island."""

    def rules(self) -> GridRules:
        """Return the rules of the archive."""
        return GridRules(
            islands=self.islands,
            population=self.population,
            elites=self.elites,
            dimensions=self.features,
            bins=self.bins,
            explore=self.explore,
            exploit=self.exploit,
            elite_share=self.elite_share,
            migration_interval=self.migration_interval,
            migration_share=self.migration_share,
            references=self.references,
        )


class OpenEvolveOptions(IslandOptions):
    """The same, and the form of an answer."""

    answer: Literal["whole", "patch"] = "whole"
    """Whole programs, or SEARCH/REPLACE blocks on the parent. OpenEvolve 0.4.1 asks for blocks by
    default; whole programs are our default, since every model can write them."""


class IslandSearch:
    """Issues requests at any time, from the programs that are known by then. Lifetime: one run."""

    def __init__(
        self, plan: Plan, score: Score, options: IslandOptions, form: Literal["evolve", "patch"]
    ) -> None:
        self._plan, self._score, self._options, self._form = plan, score, options, form
        self._grid = Grid(options.rules())
        self._next = 0
        self._islands: dict[str, int] = {}
        """The island of each request without a result."""
        self._numbers: dict[str, int] = {}
        """The place of each request in their order."""

    def ask(self, limit: int) -> list[Ask]:
        """Return requests, for one island after the other."""
        asks: list[Ask] = []
        while len(asks) < limit and self._next < self._plan.turns:
            asks.append(self._request(self._next))
            self._next += 1
        return asks

    def _request(self, number: int) -> Ask:
        name = next_ask(self._plan, number).id
        island = number % self._options.islands
        self._numbers[name] = number
        self._islands[name] = island
        if not self._grid.members:
            # The original starts from a given program. Here a model writes the first ones.
            return next_ask(self._plan, number, form="evolve", operator="begin")
        found = sample_island(self._grid, island, self._options.diverse, self._draw(name, "ask"))
        if self._options.lineage == "parent":
            self._islands[name] = found.parent.island
        shown, parents = self._shown(found), (found.parent.writer,)
        return next_ask(self._plan, number, shown, parents, form=self._form, operator="evolve")

    def _shown(self, found: ChosenParent) -> tuple[str, ...]:
        """Return the writers of the fittest programs, the next ones and the inspirations.

        The original draws the diverse ones among the next `diverse` ranks, so it takes all.
        """
        grid, parent = self._grid, found.parent
        ranked = grid.fittest(grid.islands[parent.island])
        best = ranked[: self._options.top + self._options.diverse]
        members = [*(grid.members[name] for name in best), *found.inspirations]
        writers = {member.writer for member in members} - {parent.writer}
        return tuple(sorted(writers, key=self._numbers.__getitem__))

    def tell(self, turn: Turn) -> None:
        """Admit a program that was judged; others may leave, and some migrate when it is time."""
        island = self._islands.pop(turn.ask.id, None)
        if island is None or not turn.source or not turn.judgements:
            return
        score = self._score(turn)
        if score is None:
            return
        name, draw = turn.ask.id, self._draw(turn.ask.id, "tell")
        member = Member(name, code_of(turn), {COMBINED: score}, writer=name)
        self._grid.admit(member, island, draw)
        self._grid.end_generation(island)
        if self._grid.migration_is_due():
            self._grid.migrate(draw)

    def cells(self) -> list[ArchiveCell]:
        """Return the owners of the cells, island by island."""
        names, found = self._options.features, []
        for island, cells in enumerate(self._grid.cells, start=1):
            for cell, owner in sorted(cells.items()):
                place = ", ".join(
                    f"{name} {number}" for name, number in zip(names, cell, strict=True)
                )
                writer = self._grid.members[owner].writer
                found.append(ArchiveCell(self._plan.sample, f"island {island}, {place}", writer))
        return found

    def _draw(self, ask: str, step: str) -> Draw:
        return lambda purpose: chooser(self._plan.seed, ask, step, purpose)


def check_budget(strategy: str, plan: Plan, options: IslandOptions) -> None:
    """Refuse options that the number of requests cannot serve.

    Raises:
        ConfigError: an option needs more requests, or two options exclude each other.
    """
    shown = options.top + options.diverse
    for names, needed in (("islands", options.islands), ("top + diverse", shown)):
        if needed > plan.turns:
            raise ConfigError(
                f"strategy {strategy}, option {names!r}: {needed} needs at least {needed} "
                f"requests, and there are {plan.turns}"
            )
    if options.population < options.islands:
        raise ConfigError(
            f"strategy {strategy}, option 'population': {options.population} programs cannot live "
            f"on {options.islands} islands; give at least {options.islands}"
        )
    if options.explore + options.exploit > 1:
        raise ConfigError(
            f"strategy {strategy}, options 'explore' and 'exploit': their sum is "
            f"{options.explore + options.exploit:g}; give two probabilities with a sum of at most 1"
        )


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; `OpenEvolveOptions` lists its options."""
    options = OpenEvolveOptions.read("openevolve", plan.options)
    check_budget("openevolve", plan, options)
    form: Literal["evolve", "patch"] = "patch" if options.answer == "patch" else "evolve"
    return IslandSearch(plan, score, options, form)
