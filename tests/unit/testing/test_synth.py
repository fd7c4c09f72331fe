"""Programs of SynthKernel-1 are read and judged by their definition."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilewright.languages.reply_parser import parse_reply
from tilewright.testing.synth import (
    ENTRY,
    LEVELS,
    REFERENCE,
    Program,
    judge,
    parse,
    render,
    time_of,
)

PROGRAMS = st.builds(Program, **{name: st.sampled_from(levels) for name, levels in LEVELS.items()})
GOOD = render(REFERENCE)


def test_order_one_costs_where_the_tile_is_small():
    small, large = REFERENCE._replace(tile_n=64), REFERENCE._replace(tile_m=64)
    assert time_of(small) == time_of(large)
    assert time_of(small._replace(order=1)) > time_of(small) > time_of(large._replace(order=1))


@given(PROGRAMS)
def test_a_program_survives_its_text_and_the_reply_parser(program):
    assert parse(render(program)) == program
    (file,) = parse_reply(render(program), ENTRY).files
    assert parse(file.text) == program
    assert parse(render(program).replace("\n", " \r\n")) == program


@pytest.mark.parametrize(
    ("change", "verdict", "says"),
    [
        ({"tile_m": 256, "tile_n": 256, "tile_k": 64, "stages": 2}, "failed", "131,072 bytes"),
        ({"tile_m": 128, "tile_n": 64}, "failed", "256 accumulators"),
        ({"tile_m": 256, "tile_n": 256, "fuse": 4}, "failed", "build"),
        ({"fuse": 5}, "incorrect", "bit 4 without bit 2"),
        ({"vec": 4}, "incorrect", "eighth of tile_k 16"),
        ({"fuse": 6, "vec": 2}, "correct", ""),
    ],
)
def test_each_gate_gives_its_verdict(change, verdict, says):
    found = judge(render(REFERENCE._replace(**change)))
    assert found.verdict == verdict
    assert says in found.reason


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "lacks tile_m, tile_n"),
        (GOOD.replace("# vec: 1\n", ""), "lacks vec"),
        (GOOD + GOOD, "tile_m is given twice"),
        (GOOD.replace("warps: 1", "warps: 3"), "warps is '3'; known: 1, 2, 4, 8"),
        (GOOD.replace("warps: 1", "warps: 01"), "warps is '01'"),
        (GOOD.replace("warps: 1", "warps: \ud800"), r"warps is '\ud800'"),
        (GOOD.replace("warps: 1", "warps:"), "warps is ''"),
    ],
)
def test_a_bad_text_is_a_failed_judgement(text, says):
    found = judge(text)
    assert found.verdict == "failed"
    assert found.speedup is None
    assert found.reason.startswith("unparseable: ")
    assert says in found.reason


@given(st.text() | st.text(alphabet="# tile_mnk:1624\r\n"))
@example("# vec: " + " " * 100_000 + "x")
@example("# vec:\u0664")
def test_arbitrary_text_never_raises(text):
    assert isinstance(parse(text), str)
    assert judge(text).verdict == "failed"
    assert judge(GOOD + text).verdict in ("correct", "failed")
