"""Each timed call gets inputs of its own, at secret places, and some calls enter no ratio.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.evaluator.timing.test_blocks import NAMES, Scripted, plan, steady
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.messages import Result
from tilewright.evaluator.timing import blocks
from tilewright.evaluator.timing.calibration import GPU_DEFAULT
from tilewright.evaluator.timing.case_timings import (
    CaseTimes,
    LaunchGateMode,
    TimedCall,
    charged_times,
)
from tilewright.evaluator.timing.gpu_clock import CudaEventClock
from tilewright.records import Case

SHARE = blocks.VARIED_SHARE / (1 - blocks.VARIED_SHARE)
"""Halves of varied calls for one half of a block."""


def varying(blocks: int = 40, eager: Any = None, candidate: Any = None) -> Scripted:
    """Return a session whose reference can judge two variations."""
    made = Scripted.of(plan(blocks), eager or steady(2e-3), candidate or steady(1e-3))
    made.usable_variations = {"one": ["scale", "sign"]}
    return made


def halves(session: Scripted) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return each renewal with the calls that got its values."""
    found: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for kind, fields in session.log:
        if kind == "renew":
            found.append((fields, []))
        elif kind == "call":
            found[-1][1].append(fields)
    return found


def test_both_calls_of_half_a_block_get_the_same_new_values_at_the_same_address():
    session = Scripted.of(plan(8), steady(2e-3), steady(1e-3))
    session.time()

    made = halves(session)
    assert len(made) == 16
    for renewal, (first, second) in made:
        assert {first["runner"], second["runner"]} == set(NAMES)
        assert first["base"] == second["base"]
        assert first["forward_seed"] == second["forward_seed"] == renewal["forward_seed"]
    assert len({renewal["seed"] for renewal, _ in made}) == 16
    assert len({renewal["forward_seed"] for renewal, _ in made}) == 16
    published = [(each["runner"], each["base"]) for each in session.logged("publish")]
    assert published == [(each["runner"], each["base"]) for each in session.logged("call")]


def test_a_call_gets_the_tree_of_its_renewed_sample():
    session = Scripted.of(plan(4), steady(2e-3), steady(1e-3))
    judge: Any = session.judge
    judge.tree = {"t": "tuple", "v": [{"t": "value", "v": 4.5}]}
    session.time()

    assert {str(call["args"]) for call in session.logged("call")} == {str(judge.tree)}


def test_addresses_seeds_and_order_are_secret():
    bases, seeds = [], []
    for root in ("0" * 32, "1" * 32):
        session = Scripted.of(plan(40), steady(2e-3), steady(1e-3))
        session.context = replace(session.context, root=root)
        session.time()
        bases.append([calls[0]["base"] for _, calls in halves(session)])
        seeds.append({renewal["seed"] for renewal, _ in halves(session)})

    assert bases[0] != bases[1]
    assert not seeds[0] & seeds[1]
    assert len(set(bases[0])) == 3
    pairs = set(itertools.pairwise(bases[0]))
    assert len(pairs) == 9


def test_varied_calls_are_made_at_secret_moments_and_enter_no_ratio():
    count = [0]

    def slow_on_all(_: int) -> tuple[float, float]:
        count[0] += 1
        return (1e-3, 0.0)

    session = varying(60, candidate=slow_on_all)
    times = session.time()
    made = halves(session)
    places = [place for place, (renewal, _) in enumerate(made) if renewal["varied"]]

    assert len(made) == 120 + len(places)
    assert 0.5 * SHARE * 120 < len(places) < 2 * SHARE * 120
    assert {len(times.total_s[name]) for name in NAMES} == {120}
    assert {len(times.untimed_cpu_s[name]) for name in NAMES} == {120}
    assert {len(times.varied[name]) for name in NAMES} == {len(places)}
    # Neither their place nor their order tells which calls they are.
    gaps = {after - before for before, after in itertools.pairwise(places)}
    assert len(gaps) >= 5
    assert {made[place][1][0]["runner"] for place in places} == set(NAMES)
    assert count[0] == 3 + 120 + len(places)


def test_the_ratio_is_that_of_nominal_inputs():
    varied = [False]

    def slow_when_varied(_: int) -> tuple[float, float]:
        return (9e-3 if varied[0] else 1e-3, 0.0)

    session = varying(40, candidate=slow_when_varied)
    judge: Any = session.judge
    ask = judge.request

    def request(message: Any, timeout_s: float = 0.0) -> Any:
        varied[0] = getattr(message, "varied", varied[0])
        return ask(message, timeout_s)

    judge.request = request
    times = session.time()

    assert set(charged_times(times, "candidate")) == {1e-3}
    assert set(times.varied["candidate"]) == {("scale", 9e-3), ("sign", 9e-3)}
    assert set(times.varied["eager"]) == {("scale", 2e-3), ("sign", 2e-3)}


def test_varied_or_not_the_same_is_asked():
    session = varying(40)
    session.time()
    kinds: dict[bool, set[tuple[str, ...]]] = {False: set(), True: set()}
    varied, asked = False, list[str]()
    for kind, fields in [*session.log, ("renew", {"varied": False})]:
        if kind == "renew":
            if asked:
                kinds[varied].add(tuple(asked))
            varied, asked = fields["varied"], []
            assert fields.get("variation", "sign") in ("scale", "sign")
        elif kind in ("publish", "call", "finish_timed"):
            asked.append(kind)

    assert kinds[True] == kinds[False] == {("publish", "finish_timed", "call") * 2}
    renewals = session.logged("renew")
    # A variation is named for every call, so that it takes the same time to compute it.
    for varied in (False, True):
        named = {each["variation"] for each in renewals if each["varied"] is varied}
        assert named == {"scale", "sign"}
    # No call tells its runner whether it is varied.
    assert not [call for call in session.logged("call") if {"varied", "variation"} & set(call)]


def test_without_usable_variations_no_call_is_varied():
    session = Scripted.of(plan(40), steady(2e-3), steady(1e-3))
    session.usable_variations = {"another": ["scale"]}
    times = session.time()

    assert not any(fields["varied"] for fields in session.logged("renew"))
    assert {fields["variation"] for fields in session.logged("renew")} == {"nominal"}
    assert times.varied == {"eager": [], "candidate": []}


@pytest.mark.parametrize(
    ("answers", "asked"), [([], 8), ([False], 9), ([False] * 3, 10), ([False] * 24, 24)]
)
def test_a_generator_of_random_sizes_is_asked_again_and_then_repeats_its_values(answers, asked):
    session = Scripted.of(plan(4), steady(2e-3), steady(1e-3))
    judge: Any = session.judge
    judge.renewals = list(answers)
    session.time()

    renewals = session.logged("renew")
    assert len(renewals) == asked
    assert len({each["seed"] for each in renewals}) == asked
    assert len(session.logged("call")) == 16


@pytest.mark.reads_settings
def test_baseline_outputs_are_copied_in_no_timed_call():
    evaluation = Scripted.of(plan(20), steady(2e-3), steady(1e-3))
    evaluation.outputs_size = 1 << 30
    evaluation.time()
    asked = evaluation.logged("finish_timed")
    assert {fields["keep"] for fields in asked if fields["runner"] == "eager"} == {False}
    assert {fields["keep"] for fields in asked if fields["runner"] == "candidate"} == {True, False}


@pytest.mark.parametrize(("size", "most"), [(16, 6), (4 << 20, 4), (16 << 20, 3), (1 << 30, 2)])
def test_callers_hold_outputs_within_a_limit_of_memory(size, most):
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.outputs_size = size
    session.time()

    assert [session.runners[name].max_held for name in NAMES] == [most] * 2


def test_the_judge_is_told_which_outputs_are_held():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.time()

    numbers = dict.fromkeys(NAMES, 3)  # of the warm-up
    for fields in session.logged("finish_timed"):
        name = fields["runner"]
        numbers[name] += 1
        assert (fields["call"], fields["held"]) == (numbers[name], [numbers[name] - 1])
        assert fields["dropped"] == [numbers[name] - 1]


class NotingClock(CudaEventClock):
    """A clock that makes no call, and keeps what it was asked to call."""

    def __init__(self) -> None:
        self.made: list[TimedCall] = []

    def call(self, pool: Any, times: CaseTimes, call: TimedCall) -> CallTiming:
        del pool, times
        self.made.append(call)
        return CallTiming(1e-3, 0.0, Result(outputs=[], launches=1))


@pytest.mark.parametrize(
    ("tree", "renews_early", "gate", "with_call"),
    [
        ({"t": "list", "v": [{"t": "tensor"}]}, False, None, True),
        ({"t": "list", "v": [{"t": "dict", "v": [["x", {"t": "tensor"}]]}]}, False, None, True),
        ({"t": "list", "v": [{"t": "tensor"}, {"t": "float", "v": "0.5"}]}, False, None, False),
        ({"t": "list", "v": [{"t": "tensor"}]}, True, None, False),
        ({"t": "list", "v": [{"t": "tensor"}]}, False, LaunchGateMode(0.0, launching=True), False),
    ],
)
def test_on_a_device_inputs_are_made_with_the_call_if_a_runner_needs_nothing_of_them(
    tree, renews_early, gate, with_call
):
    session, clock = Scripted.of(plan(6), steady(2e-3), steady(1e-3)), NotingClock()
    times = CaseTimes.of("one", NAMES, on_device=True)
    times.gpu.renews_early, times.gpu.launch_gate = renews_early, gate
    made = session.sample(Case(name="one"), "nominal", timed=True)
    made = replace(made, layout=replace(made.layout, tree=tree))
    fields = (session, clock, GPU_DEFAULT, NAMES, made, 3, times, [], "nominal", plan(6))
    blocks.CaseTimer(*fields).time_replicate(1)

    seeds = {call.renewal.seed for call in clock.made if call.renewal}
    # One block: no output came back, which is wrong.
    assert len(clock.made) == 4
    assert len(seeds) == (4 if with_call else 0)
    assert len(session.logged("renew")) == (0 if with_call else 4)
