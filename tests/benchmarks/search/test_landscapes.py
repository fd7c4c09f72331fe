"""The landscapes and the ladder follow their definitions."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.search.landscapes import (
    Ladder,
    Uniform,
    UnitMove,
    landscape,
    moves,
    programs,
    speedup_of,
)
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.scripted import Scripted
from tilewright.records.events import Ask
from tilewright.testing.synth import (
    LEVELS,
    OPTIMUM,
    REFERENCE,
    Program,
    judge,
    parse,
    render,
    time_of,
)

PROGRAMS = st.builds(Program, **{name: st.sampled_from(levels) for name, levels in LEVELS.items()})
SECOND_PEAK = Program(64, 64, 32, 4, 2, 4, 7, 1)
GOOD = render(REFERENCE)


def ask(number: int = 0) -> Ask:
    return Ask(id=f"synth#0.{number}", problem="synth", turn=number)


def shown(*replies: str) -> list[Message]:
    messages = [Message(role="user", text="Make this fast.")]
    for reply in replies:
        messages.append(Message(role="assistant", text=reply))
        messages.append(Message(role="user", text="Write a better one."))
    return messages


def test_the_landscape_is_known_exactly():
    found = landscape()
    assert (found.valid, found.build_failures, found.wrong) == (58_860, 36_864, 48_276)
    assert found.valid + found.build_failures + found.wrong == 144_000
    assert [program for program, _ in found.peaks] == [OPTIMUM, SECOND_PEAK]
    assert [speedup for _, speedup in found.peaks] == pytest.approx([19.171, 12.373], abs=5e-4)
    shares = (found.median, found.p90, found.p99)
    assert shares == pytest.approx((3.67, 8.33, 12.58), abs=5e-3)


@given(PROGRAMS)
def test_moves_change_one_field_by_one_level_and_are_reversible(program):
    near = moves(program)
    assert len(set(near)) == len(near)
    ends = sum(
        value in (levels[0], levels[-1])
        for value, (name, levels) in zip(program, LEVELS.items(), strict=True)
        if name != "fuse"
    )
    assert len(near) == 2 * 7 + 3 - ends
    for other in near:
        (name,) = (name for name in LEVELS if getattr(other, name) != getattr(program, name))
        old, new = getattr(program, name), getattr(other, name)
        if name == "fuse":
            assert (old ^ new).bit_count() == 1
        else:
            assert abs(LEVELS[name].index(old) - LEVELS[name].index(new)) == 1
        assert program in moves(other)


@given(PROGRAMS, PROGRAMS, st.integers(0, 2**32), st.integers(0, 99))
def test_a_unit_move_continues_from_the_last_shown_program(first, last, seed, number):
    write = UnitMove(seed)
    reply = write(shown(render(first), render(last)), ask(number))
    assert parse(reply) in moves(last)
    assert reply == UnitMove(seed)(shown(render(last)), ask(number))


@pytest.mark.parametrize("messages", [[], shown(), shown(GOOD.replace("vec", "vac"))])
def test_a_unit_move_starts_at_the_reference_without_a_shown_program(messages):
    assert parse(UnitMove(0)(messages, ask())) in moves(REFERENCE)


def test_every_move_is_as_likely_as_any_other():
    wanted = moves(OPTIMUM)
    times = 200 * len(wanted)
    found = Counter(parse(UnitMove(1)(shown(render(OPTIMUM)), ask(n))) for n in range(times))
    assert set(found) == set(wanted)
    assert all(abs(count - 200) < 5 * math.sqrt(200) for count in found.values())


def test_uniform_replies_have_the_shares_of_all_programs():
    verdicts = Counter(judge(Uniform(1)(shown(GOOD), ask(n))).verdict for n in range(4_000))
    for verdict, count in (("correct", 58_860), ("failed", 36_864), ("incorrect", 48_276)):
        share = count / 144_000
        wanted = 4_000 * share
        assert abs(verdicts[verdict] - wanted) < 5 * math.sqrt(wanted * (1 - share))


@pytest.mark.parametrize("proposer", [UnitMove, Uniform])
def test_a_proposer_is_a_script_whose_replies_depend_on_seed_and_ask_alone(proposer):
    policy = Scripted(proposer(3))
    replies = [policy.answer(shown(), ask(n)).text for n in range(40)]
    assert replies[::-1] == [policy.answer(shown(), ask(n)).text for n in reversed(range(40))]
    assert len(set(replies)) > 5
    assert replies != [proposer(4)(shown(), ask(n)) for n in range(40)]


def test_the_number_of_programs_is_the_product_of_the_levels():
    found = list(programs())
    assert len(set(found)) == len(found) == math.prod(map(len, LEVELS.values())) == 144_000


@given(st.integers(1, 12), st.floats(0.05, 0.95))
def test_closed_forms_follow_from_one_more_step(steps, chance):
    now, one_more = Ladder(steps, chance), Ladder(steps + 1, chance)
    # To reach the step below takes so long; then a try, which with the chance was the last.
    again = (now.sequential_mean() + 1) / chance
    assert one_more.sequential_mean() == pytest.approx(again)
    assert one_more.best_keeping_mean() == pytest.approx(now.best_keeping_mean() + 1 / chance)
    assert Ladder(1, chance).sequential_mean() == pytest.approx(1 / chance)


@pytest.mark.parametrize("keeps_best", [False, True])
@pytest.mark.parametrize(("steps", "chance"), [(3, 0.5), (5, 0.5), (5, 0.3)])
def test_climbs_take_as_long_as_the_closed_form(steps, chance, keeps_best):
    ladder, draw = Ladder(steps, chance), random.Random(7)
    tries = [ladder.climb(draw, keeps_best=keeps_best) for _ in range(1_000)]
    wanted = ladder.best_keeping_mean() if keeps_best else ladder.sequential_mean()
    error = statistics.stdev(tries) / math.sqrt(len(tries))
    assert abs(statistics.fmean(tries) - wanted) < 4 * error


@pytest.mark.parametrize(("steps", "chance"), [(0, 0.5), (3, 0.0), (3, 1.0), (3, math.nan)])
def test_an_impossible_ladder_is_refused(steps, chance):
    with pytest.raises(ValueError, match="ladder"):
        Ladder(steps, chance)


def test_times_worked_out_by_hand():
    # 2 * 64/16 * (1 + 0.15 * 2), pipe 1.8, occupancy 1 + 0.25 * 3, depth 1.1
    assert time_of(REFERENCE) == pytest.approx((0.5 + 10.4) * 1.8 * 1.75 * 1.1 * 0.5 + 0.9)
    # 2 * 64/128, order 0.9, pipe 1.26, occupancy 1, depth 1; three are fused
    assert time_of(OPTIMUM) == pytest.approx(1.4 * 1.26 * 0.5 + 0.9 - 0.75)
    assert speedup_of(REFERENCE) == 1.0


@given(PROGRAMS)
def test_a_judgement_follows_the_formulas(program):
    found = judge(render(program))
    assert found.speedup == found.low == found.high == speedup_of(program)
    assert (found.verdict == "correct") == (found.speedup is not None)
    assert bool(found.reason) == (found.speedup is None)
