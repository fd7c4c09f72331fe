"""Properties of the grid of islands, of its features, and of the draw of parents."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tilewright.loop.archives.grid import Grid
from tilewright.loop.archives.grid_features import Features, distance, near
from tilewright.loop.archives.grid_members import GridRules, Member, fitness_of, total
from tilewright.loop.archives.grid_sampling import sample_any, sample_island
from tilewright.loop.random_values import chooser

CODES = st.text("ab\n", max_size=12)
INSERTS = st.lists(st.tuples(CODES, st.sampled_from([0.0, 0.5, 1.0, 1.5]), st.booleans()))
RULES = st.builds(
    GridRules,
    islands=st.integers(1, 4),
    population=st.integers(4, 12),
    elites=st.integers(1, 6),
    bins=st.integers(1, 4),
    references=st.integers(1, 4),
    known_diversities=st.integers(1, 5),
    migration_interval=st.integers(1, 3),
    migration_share=st.floats(0, 1),
)


def draw_of(*purpose):
    return lambda name: chooser(0, *purpose, name)


def member(number, code="a", score=1.0):
    return Member(f"p{number}", code, {"combined_score": score}, writer=f"p{number}")


def grown(rules, inserts, samples=True):
    """Yield the grid after each insert, with samples and migrations between."""
    grid = Grid(rules)
    for number, (code, score, elsewhere) in enumerate(inserts):
        island = number % rules.islands
        if samples and grid.members:
            sample = sample_any if elsewhere else sample_island
            sample(grid, island, 3, draw_of(number, "ask"))
        grid.admit(member(number, code, score), island, draw_of(number, "tell"))
        grid.end_generation(island)
        if grid.migration_is_due():
            grid.migrate(draw_of(number, "tell"))
        yield grid


def check(grid):
    on_islands = [name for island in grid.islands for name in island]
    assert sorted(on_islands) == sorted(grid.members)
    assert set(grid.fitness) == set(grid.members)
    for island, names in enumerate(grid.islands):
        assert all(grid.members[name].island == island for name in names)
        assert set(grid.cells[island].values()) <= set(names)
        assert len(set(grid.cells[island].values())) == len(grid.cells[island])
        assert not grid.island_bests[island] or grid.island_bests[island] in names
    assert set(grid.elites) <= set(grid.members)
    assert len(grid.elites) <= grid.rules.elites
    assert grid.best in grid.members


@settings(deadline=None)
@given(RULES, INSERTS)
def test_every_member_lives_on_one_island_and_all_lists_agree(rules, inserts):
    for number, grid in enumerate(grown(rules, inserts)):
        check(grid)
        assert grid.fitness[grid.best] == max(score for _, score, _ in inserts[: number + 1])
        # Copies for empty islands come after a trimming, so they may exceed the limit for a while.
        assert len(grid.members) <= rules.population + rules.islands


@settings(deadline=None)
@given(RULES, INSERTS)
def test_the_newest_program_and_the_best_one_stay(rules, inserts):
    grid = Grid(rules)
    for number, (code, score, _) in enumerate(inserts):
        grid.admit(member(number, code, score), number % rules.islands, draw_of(number))
        assert f"p{number}" in grid.members
        assert grid.best in grid.members
        assert len(grid.members) <= rules.population


@settings(deadline=None)
@given(RULES, INSERTS)
def test_inspirations_are_other_members_of_one_island(rules, inserts):
    for grid in grown(rules, inserts, samples=False):
        for island in range(rules.islands):
            found = sample_island(grid, island, 3, draw_of("sample", island))
            names = [item.name for item in found.inspirations]
            assert len(set(names)) == len(names) <= 3
            assert found.parent.name not in names
            where = {item.island for item in found.inspirations}
            assert len(where) <= 1
            if grid.islands[island]:
                assert where <= {island}
                others = len(grid.islands[island]) - (found.parent.island == island)
                assert len(names) == min(3, others)


@settings(deadline=None)
@given(INSERTS)
def test_migrants_are_copies_of_the_fittest_and_no_code_arrives_twice(inserts):
    rules = GridRules(islands=4, migration_interval=10_000)
    grids = list(grown(rules, inserts))
    if not grids:
        return
    grid = grids[-1]
    before = [{grid.members[name].code for name in names} for names in grid.islands]
    best = [grid.fittest(names)[:1] for names in grid.islands]
    known = set(grid.members)
    grid.migrate(draw_of("migrate"))
    check(grid)
    for name in set(grid.members) - known:
        copy = grid.members[name]
        assert copy.migrant
        # A resident that lost its cell earlier in the round does not count any more.
        residents = [other for other in grid.islands[copy.island] if other in known]
        assert copy.code not in {grid.members[other].code for other in residents}
        neighbours = [(copy.island - 1) % 4, (copy.island + 1) % 4]
        assert any(copy.code in before[island] for island in neighbours)
    for island, names in enumerate(best):
        for name in set(names) & known & set(grid.members):
            for neighbour in ((island - 1) % 4, (island + 1) % 4):
                # A migrant may lose its cell to one of the same round that is as fit. A resident
                # with its code keeps it away, and may lose its own cell later.
                there = {grid.members[other].code for other in grid.islands[neighbour]}
                fitness = [grid.fitness[other] for other in grid.islands[neighbour]]
                arrived = grid.members[name].code in there | before[neighbour]
                assert arrived or max(fitness) >= grid.fitness[name]


def test_a_cell_keeps_the_fitter_program_and_of_equal_ones_the_first():
    grid = Grid(GridRules(islands=1, dimensions=("complexity",)))
    for number, score in enumerate((1.0, 1.0, 2.0)):
        grid.admit(member(number, "aa", score), 0, draw_of(number))
        assert list(grid.cells[0].values()) == [("p0", "p0", "p2")[number]]
    # The former owner left; the one that got no cell still lives on the island.
    assert list(grid.islands[0]) == ["p1", "p2"]


def test_the_way_to_a_parent_has_the_published_probabilities():
    grid = Grid(GridRules(islands=1, elites=1, dimensions=("complexity",)))
    for number, (size, score) in enumerate(((1, 4.0), (21, 0.0), (11, 1.0))):
        grid.admit(member(number, "a" * size, score), 0, draw_of(number))
    assert list(grid.islands[0]) == ["p0", "p1", "p2"]
    assert list(grid.elites) == ["p0"]
    draws = 20_000
    seen = Counter(
        sample_island(grid, 0, 0, draw_of("parent", number)).parent.name for number in range(draws)
    )
    weights = (4.0, 0.001, 1.0)
    wanted = [0.2 / 3 + 0.1 * weight / sum(weights) for weight in weights]
    wanted[0] += 0.7
    found = stats.chisquare(
        [seen[f"p{number}"] for number in range(3)], [share * draws for share in wanted]
    )
    assert found.pvalue > 0.01


def test_a_draw_for_an_empty_island_takes_a_copy_of_the_best():
    grid = Grid(GridRules(islands=2, explore=1.0, exploit=0.0))
    grid.admit(member(0), 0, draw_of(0))
    copy = sample_any(grid, 1, 2, draw_of("sample")).parent
    assert (copy.island, copy.code, copy.writer, copy.migrant) == (1, "a", "p0", False)
    assert list(grid.islands[1]) == [copy.name]


def test_features_follow_the_published_formulas():
    # Length 2 against 5, no line break against 1, and three characters that one of them has.
    assert distance("ab", "bcd\nb") == pytest.approx(0.1 * 3 + 10 * 1 + 0.5 * 4)
    assert distance("ab", "ab") == 0
    features = Features(GridRules(dimensions=("complexity", "score")))
    sizes = [(10, 1.0), (20, 3.0), (15, 2.0), (20, 3.0), (10, 1.0)]
    cells = []
    for number, (size, score) in enumerate(sizes):
        item = member(number, "a" * size, score)
        cells.append(features.cell(item, [item], draw_of(number)))
    assert cells == [(5, 5), (9, 9), (5, 5), (9, 9), (0, 0)]
    assert features.bounds == {"complexity": (10.0, 20.0), "score": (1.0, 3.0)}


def test_a_metric_with_the_name_of_a_feature_is_the_feature():
    features = Features(GridRules(dimensions=("complexity",)))
    cells = []
    for number, value in enumerate((0.0, 1.0, 0.25)):
        item = Member(f"p{number}", "a", {"complexity": value, "speed": 1.0})
        cells.append(features.cell(item, [item], draw_of(number)))
    # One dimension has 100 cells, so that all elites find room.
    assert cells == [(50,), (99,), (25,)]
    assert features.bounds == {"complexity": (0.0, 1.0)}


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.lists(st.integers(-2, 2), min_size=3, max_size=3),
)
def test_nearby_cells_are_on_the_grid(cell, steps):
    found = near(cell, steps[: len(cell)], 10)
    assert all(
        0 <= place <= 9 and abs(place - own) <= 2 for place, own in zip(found, cell, strict=True)
    )


def test_the_fitness_is_the_combined_score_or_the_mean_without_features():
    assert fitness_of({"combined_score": 2.0, "speed": 9.0}, ()) == 2.0
    assert fitness_of({"speed": 1.0, "accuracy": 2.0, "memory": 9.0}, ("memory",)) == 1.5
    assert fitness_of({"memory": 9.0}, ("memory",)) == 9.0


@given(st.lists(st.floats(-1e6, 1e6)))
def test_a_total_is_rounded_after_each_term(values):
    running = 0.0
    for value in values:
        running = running + value
    assert total(values) == running
    assert total([1e16, 1.0, -1e16]) == 0.0


@pytest.mark.parametrize(("elites", "dimensions", "bins"), [(100, 2, 10), (400, 2, 20), (10, 3, 4)])
def test_the_grid_has_room_for_all_elites(elites, dimensions, bins):
    rules = GridRules(elites=elites, dimensions=("score",) * dimensions, bins=4)
    assert rules.bins_per_dimension() == bins


def test_the_reference_set_is_chosen_far_apart():
    features = Features(GridRules(dimensions=("diversity",), references=2))
    codes = ["a", "a" * 2, "a" * 50]
    members = [member(number, code) for number, code in enumerate(codes)]
    first = random.Random(0).randint(0, 2)
    features.cell(members[0], members, lambda _: random.Random(0))
    farthest = max(codes, key=lambda code: distance(code, codes[first]))
    assert features.references == (codes[first], farthest)
