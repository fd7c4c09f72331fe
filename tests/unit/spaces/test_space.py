"""Every program of a space has one source, and a source tells its knobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.space_programs import problem_of
from tilewright.languages.detect import detect
from tilewright.problems.candidates import make_candidate
from tilewright.records import SourceFile
from tilewright.spaces import SPACES, cpp_matmul
from tilewright.spaces.space import knobs_of, moves, programs, source

FEWEST = {"cpp_matmul": 400, "triton_gemm": 1000, "triton_softmax": 1000}
EVERY = [(space, knobs) for space in SPACES.values() for knobs in programs(space)]
SPACE = pytest.mark.parametrize("space", SPACES.values(), ids=list(SPACES))


@SPACE
def test_a_space_has_enough_programs_and_each_has_its_own_source(space):
    every = programs(space)
    assert len(every) >= FEWEST[space.name]
    assert len(space.by_digest) == len(every)
    assert dict(space.start) in every


@SPACE
def test_every_value_of_a_knob_is_used_and_every_knob_has_words(space):
    for name, values in space.values.items():
        assert {knobs[name] for knobs in programs(space)} == set(values)
        assert space.words[name]


@given(st.sampled_from(EVERY))
def test_a_source_tells_its_knobs_also_after_a_model_has_repeated_it(chosen):
    space, knobs = chosen
    text = source(space, knobs)
    assert knobs_of(space, text) == knobs
    assert knobs_of(space, "\n" + text.replace("\n", "  \r\n")) == knobs
    assert knobs_of(space, text.replace("return", "retrun", 1)) is None


@given(st.sampled_from(EVERY))
def test_a_move_changes_one_knob_by_one_notch_and_can_be_undone(chosen):
    space, knobs = chosen
    found = moves(space, knobs)
    assert found
    for other in found:
        (name,) = [name for name in knobs if knobs[name] != other[name]]
        values = space.values[name]
        assert abs(values.index(knobs[name]) - values.index(other[name])) == 1
        assert knobs in moves(space, other)


def test_the_two_full_register_tiles_are_more_than_one_move_apart():
    space = cpp_matmul.SPACE
    one = {**space.start, "form": "vectors", "rows": 8, "cols": 32}
    other = {**one, "rows": 4, "cols": 64}
    between = [knobs for knobs in moves(space, one) if knobs in moves(space, other)]
    tiles = [(knobs["rows"], knobs["cols"]) for knobs in between]
    assert tiles == [(4, 32), (8, 64)]
    # The larger one does not build: see `static_assert` in the source.
    assert "static_assert(ROWS * COLS <= 256" in source(space, between[1])


@pytest.mark.parametrize(
    "more", [{"rows": 3}, {"unknown": 1}, {"form": "dots", "threads": 2}, {"result": "kept"}]
)
def test_no_other_combination_is_a_program(more):
    with pytest.raises(ValueError, match="has no program"):
        source(cpp_matmul.SPACE, {**cpp_matmul.SPACE.start, **more})


@SPACE
def test_sources_are_candidates_of_their_problem(space):
    problem = problem_of(space)
    suffix, language = (".cpp", "cpp") if space.tag == "cpp" else (".py", "triton")
    for knobs in programs(space)[::37]:
        file = SourceFile(path=f"candidate{suffix}", text=source(space, knobs))
        assert detect((file,)) == language
        candidate = make_candidate((file,), problem)
        assert not isinstance(candidate, tuple), knobs
        assert candidate.entry == problem.entry
