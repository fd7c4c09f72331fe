"""Exemplars of a training: which programs a prompt shows, and that a resumed run draws the same."""

from __future__ import annotations

from collections import Counter

import pytest

from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.rl.exemplar_archive import ExemplarArchive
from tilewright.rl.presets import ExemplarSection

BUCKETS = ExemplarSection(selection="buckets")


def a_turn(step, sample, speedup, *, verdict="correct", source="", problem="p"):
    ask = Ask(id=f"step{step:05}/{problem}.0#{sample}.0", problem=problem, sample=sample)
    judged = EvalSummary(
        protocol="strict", verdict=verdict, speedup=speedup, low=speedup, high=speedup
    )
    name = source or f"{step}-{sample}"
    return Turn(ask=ask, source=name, code=name, judgements=(judged,))


def speeds(context):
    return [turn.judgements[0].speedup for turn in context.shown]


def archive_of(turns, section=BUCKETS, seed=0):
    found = ExemplarArchive(section, seed)
    found.add(turns)
    return found


def test_two_programs_of_different_buckets_are_shown_slowest_first():
    archive = archive_of([a_turn(0, n, 2.0**n) for n in range(4)])
    for step in range(1, 30):
        first, second = speeds(archive.context(f"step{step:05}/p.0", "p"))
        assert first < second


def test_the_pairs_follow_the_chances_of_the_buckets():
    means = (0.9, 1.1, 1.6, 2.4)
    turns = [a_turn(0, n, mean) for n, mean in enumerate(means)]
    archive = archive_of(turns, ExemplarSection(selection="buckets", tau=0.5))
    count = 4000
    seen = Counter(tuple(speeds(archive.context(f"step1/p.{n}", "p"))) for n in range(count))
    wanted = {
        (0.9, 1.1): 0.0044,
        (0.9, 1.6): 0.0127,
        (0.9, 2.4): 0.1446,
        (1.1, 1.6): 0.0191,
        (1.1, 2.4): 0.2166,
        (1.6, 2.4): 0.6026,
    }
    for pair, chance in wanted.items():
        spread = (chance * (1 - chance) / count) ** 0.5
        assert seen[pair] / count == pytest.approx(chance, abs=4 * spread), pair


def test_equally_fast_programs_give_one_exemplar_and_an_empty_archive_none():
    archive = archive_of([a_turn(0, n, 1.5) for n in range(3)])
    assert speeds(archive.context("step00001/p.0", "p")) == [1.5]
    assert archive.context("step00001/q.0", "q").shown == ()


def test_only_correct_and_timed_programs_count_and_each_once():
    turns = [
        a_turn(0, 0, 9.0, verdict="rejected"),
        a_turn(0, 1, 8.0, verdict="incorrect"),
        a_turn(0, 2, None),
        a_turn(0, 3, 1.0, source="same"),
        a_turn(0, 4, 4.0, source="same"),
    ]
    assert speeds(archive_of(turns).context("step00001/p.0", "p")) == [1.0]


def test_no_exemplar_is_of_the_batch_or_of_a_later_one():
    turns = [a_turn(step, step, 2.0**step) for step in range(6)]
    for step in range(6):
        # A session that resumes at this step knows the whole log.
        resumed = ExemplarArchive(BUCKETS, 7, turns)
        shown = resumed.context(f"step{step:05}/p.0", "p").shown
        assert all(turn.ask.sample < step for turn in shown)
        assert len(shown) == min(step, 2)


def test_a_resumed_session_shows_what_the_first_one_showed():
    turns = [a_turn(step, 4 * step + n, 1.1 ** (n + step)) for step in range(5) for n in range(4)]
    live, seen = ExemplarArchive(BUCKETS, 3), []
    for step in range(5):
        seen.append(live.context(f"step{step:05}/p.0", "p"))
        live.add(turns[4 * step : 4 * step + 4])
    for start in range(5):
        resumed = ExemplarArchive(BUCKETS, 3, reversed(turns))
        for step in range(start, 5):
            assert resumed.context(f"step{step:05}/p.0", "p") == seen[step]
            resumed.add(turns[4 * step : 4 * step + 4])


def test_the_other_selections():
    turns = [a_turn(0, n, 1.0 + n) for n in range(5)]
    best = archive_of(turns, ExemplarSection(selection="best"))
    assert speeds(best.context("step00001/p.0", "p")) == [4.0, 5.0]
    drawn = archive_of(turns, ExemplarSection(selection="random"))
    seen = Counter(tuple(speeds(drawn.context(f"step1/p.{n}", "p"))) for n in range(400))
    assert len(seen) == 10
