"""The fuzz bar, for a short run."""

from __future__ import annotations

import random

import pytest

from benchmarks.attacks import fuzz


@pytest.mark.parametrize("seed", [1, 2])
def test_no_frame_hangs_or_raises_a_foreign_exception(seed):
    assert fuzz.frames(400, seed) == []


def test_no_candidate_file_hangs_or_raises_a_foreign_exception():
    assert fuzz.files(60, 0, 3) == []


def test_a_hang_is_detected():
    def hang() -> None:
        while True:
            pass

    with pytest.raises(fuzz.Hung), fuzz.within(0.05):
        hang()


def test_a_foreign_exception_is_detected():
    def foreign() -> None:
        raise KeyError("not ours")

    (missed,) = fuzz._exchange("here", foreign)
    assert "here: " in missed
    assert "KeyError" in missed


def test_the_same_seed_makes_the_same_frames():
    first = [fuzz.frame(random.Random(5)) for _ in range(20)]

    assert first == [fuzz.frame(random.Random(5)) for _ in range(20)]
    assert len({fuzz.frame(random.Random(n)) for n in range(50)}) > 25
