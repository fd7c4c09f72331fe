"""The code of answers, and patches on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.loop.candidate_text import code_of, patched, text_of
from tilewright.records.events import Ask, Reply, Turn

CODE = "a = 1\nb = 2\nc = 3\n"


def block(old: str, new: str) -> str:
    return f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def test_blocks_are_applied_in_order():
    found = patched(
        CODE, "Two changes.\n" + block("b = 2\n", "b = 4\nd = 5\n") + block("d = 5\n", "")
    )
    assert (found.code, found.refused) == ("a = 1\nb = 4\nc = 3\n", "")


def test_a_block_may_be_the_whole_file_and_spaces_at_ends_do_not_count():
    assert patched(CODE, block("a = 1  \nb = 2\nc = 3\n", "x = 1\n")).code == "x = 1\n"


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ("no block at all", "no SEARCH/REPLACE block"),
        (block("a = 1\n", "a = 2\n") + block("q = 9\n", "q = 1\n"), "block 2 of 2"),
        (block("\n", "x\n"), "searches for nothing"),
        (block("a = 1\nc = 3\n", "x\n"), "'a = 1'"),
    ],
)
def test_a_block_that_does_not_match_is_named(reply, named):
    found = patched(CODE, reply)
    assert found.code == ""
    assert named in found.refused


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8), st.data())
def test_a_patch_of_whole_lines_changes_these_alone(lines, data):
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    old = lines[start:stop]
    first = next(n for n in range(len(lines)) if lines[n : n + len(old)] == old)
    wanted = [*lines[:first], "new", *lines[first + len(old) :]]
    code, text = ("\n".join(part) + "\n" for part in (lines, old))
    assert patched(code, block(text, "new\n")).code == "\n".join(wanted) + "\n"


def test_a_reply_of_a_megabyte_is_read():
    assert text_of("x" * (1 << 20) + "\n```python\ny = 1\n```\n") == "y = 1\n"
    assert patched(CODE, "x\n" * (1 << 19)).refused


def test_the_code_of_a_turn_is_its_own_or_that_of_its_reply():
    turn = Turn(ask=Ask(id="a", problem="p"), reply=Reply(text="```python\nx = 1\n```"))
    assert code_of(turn) == "x = 1\n"
    assert code_of(turn.model_copy(update={"code": "y = 2\n"})) == "y = 2\n"
    assert code_of(turn.model_copy(update={"refused": "no code"})) == ""
