"""The digest of tried changes: what it shows of a change, and of what the change led to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.loop.tried_changes import MAX_CHANGES, change_between, digest, outcome_line


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("a = 1\nb = 2", "a = 1\nb = 3", "`b = 2` -> `b = 3`"),
        ("a = 1", "a = 1\n\n    b = 2", "added `b = 2`"),
        ("a\nb", "a", "removed `b`"),
        ("a\nb\nc", "a\nx", "removed `b`, `c`; added `x`"),
        ("a\nb", "b\na", "the same lines in another order"),
        ("a\na", "a", "removed `a`"),
        ("", "\n".join("abcde"), "added `a`, `b`, `c` and 2 more"),
    ],
)
def test_a_change_is_told_by_its_lines(before, after, text):
    assert change_between(before, after) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("correct", 1.5, 1.2, ""), "1.50x after 1.20x"),
        (("correct", 1.5, None, ""), "1.50x"),
        (("correct", None, 1.2, ""), "correct"),
        (("incorrect", None, 1.2, "values\n differ"), "incorrect, values differ"),
        (("failed", None, 1.2, ""), "failed"),
    ],
)
def test_an_outcome_is_the_speed_or_the_reason(arguments, text):
    assert outcome_line(*arguments) == text


@given(st.text(max_size=2000), st.text(max_size=2000))
def test_a_change_has_a_bounded_length(before, after):
    assert len(change_between(before, after)) < 1_000


def test_a_digest_shows_the_newest_changes():
    tried = [f"change {number}" for number in range(20)]
    lines = digest([], tried).splitlines()
    assert lines[1:] == [f"- {text}" for text in tried[-MAX_CHANGES:]]
    assert digest([], []) == ""
