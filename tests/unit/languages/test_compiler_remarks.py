"""The remarks of g++ about the loops of a candidate are read from text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.languages.compiler_remarks import MAX_REMARKS, loop_remarks
from tilewright.languages.cpp_loops import innermost_loop_lines

SOURCE = """void f(float* x, long n) {
    for (long i = 0; i < n; ++i) {
#pragma omp simd
        for (long j = 0; j < n; ++j) x[j] += 1;
        while (x[i] > 0) x[i] -= 1;
    }
    for (long i = 0; i < n; ++i) x[i] = 2;  // for (;;)
}
"""
OUTER, PRAGMA, INNER, WAITING, LAST = 2, 3, 4, 5, 7


def remark(line: int, kind: str, text: str, path: str = "a.cpp") -> str:
    return f"{path}:{line}:12: {kind}: {text}\n"


def test_innermost_loops_are_found_by_their_line_and_their_pragma():
    found = innermost_loop_lines(SOURCE)
    assert found == {PRAGMA: INNER, INNER: INNER, WAITING: WAITING, LAST: LAST}


@pytest.mark.parametrize(
    "text",
    ["for(;;){" * 40_000, "for()" * 40_000, "for(;;){" * 500 + "\n" * 1_000_000, "{(" * 100_000],
)
def test_hostile_text_takes_no_longer_than_its_length_allows(text):
    start = time.process_time()
    innermost_loop_lines(text)
    assert time.process_time() - start < 3


def test_without_remarks_no_source_is_read():
    assert loop_remarks("", {"a.cpp": SOURCE}) == ()


def test_loops_in_loops_without_braces_are_one_nest():
    text = "for (;;)\n  for (;;)\n    while (x)\n      y++;\nfor (;;) z++;\n"
    assert set(innermost_loop_lines(text)) == {3, 5}


def test_a_loop_has_its_widest_vectors_or_the_first_reason():
    text = (
        remark(PRAGMA, "optimized", "loop vectorized using 64 byte vectors")
        + remark(PRAGMA, "optimized", "loop vectorized using 32 byte vectors")
        + remark(WAITING, "missed", "couldn't vectorize loop")
        + remark(WAITING, "missed", "not vectorized: control flow in loop.")
        + remark(WAITING, "missed", "not vectorized: unsupported use in stmt.")
        + remark(OUTER, "missed", "not vectorized: multiple nested loops.")
        + remark(LAST, "missed", "not vectorized: no vectype", path="/usr/include/math.h")
    )
    inner, waiting = loop_remarks(text, {"a.cpp": SOURCE})
    assert (inner.line, inner.vector_bytes, inner.reason) == (INNER, 64, "")
    assert (waiting.line, waiting.vector_bytes) == (WAITING, None)
    assert waiting.reason == "control flow in loop."


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_read(text, source):
    assert len(loop_remarks(text, {"a.cpp": source})) <= MAX_REMARKS


def test_a_report_holds_a_limited_number_of_loops():
    source = "for (;;) x;\n" * 100
    text = "".join(remark(line, "missed", f"not vectorized: {'y' * 500}") for line in range(1, 101))
    found = loop_remarks(text, {"a.cpp": source})
    assert len(found) == MAX_REMARKS
    assert all(len(item.reason) < 200 for item in found)
