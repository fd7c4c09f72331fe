"""The timing of a case with scripted runners: a clock that only moves where the script says.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.in_process_evaluator import ROOT, a_request
from tests.scripted_judge import ScriptedJudge
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.devices import CPU, Cores
from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import OutputPlaces, SampleLayout, TimedAnswer
from tilewright.evaluator.runners import host_call
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.messages import OutputReport, Result
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.runners.sync_page import ReportedOutputs
from tilewright.evaluator.timing.calibration import DEFAULT, PLANNED_REPLICATES
from tilewright.evaluator.timing.case_timings import CaseTimes, is_short
from tilewright.evaluator.timing.cpu_clock import ALL_BYTES, INSPECTED_WINDOWS, WINDOW_BYTES
from tilewright.evaluator.timing.rounds import MAX_REPLICATE_FACTOR, Restart, time_cases
from tilewright.evaluator.timing.speedup import compare_strict
from tilewright.records import Case, TimingPlan

PROBLEM = """import torch

CASES = [{"name": "one", "n": 4}]


def inputs(case, generator):
    return (torch.ones(4),)


def reference(x):
    return x + 1
"""
OUTPUT = {"dtype": "float32", "shape": [4]}
TREE = {"t": "tuple", "v": []}
NOTHING_SEEN = vars(host_call.NOTHING_SEEN)
NAMES = ["eager", "candidate"]
PLACES = {"eager": 1 << 20, "candidate": 2 << 20}
"""The address of each runner's outputs, which moves by one byte a call."""


def sample(name: str, **changes: Any) -> InputSampleInfo:
    known: dict[str, Any] = {
        "tree": TREE, "grad_outputs": TREE, "grads": [], "size": 4096, "output_bytes": 16,
        "outputs": [OUTPUT], "structure": "1", "oracle": "float64", "random": False,
        "stateful": False, "skipped": "", "call_s": 0.0, "ran_out_of_memory": False,
        "variation": "nominal", "places": OutputPlaces(False, [], [], []),
    }  # fmt: skip
    return InputSampleInfo(name, "one", "nominal", 0, 0, SampleLayout(**{**known, **changes}))


PROCESSES = itertools.count(1)


class ScriptedRunner:
    """A runner whose calls take the scripted times: (total, outside), in seconds."""

    def __init__(self, name: str, script: Any, log: list[Any]) -> None:
        self.name = name
        self.stage = "load"
        tree = SimpleNamespace(cpu_s=lambda: self.cpu, refresh=lambda: None, pids=[])
        self.child = SimpleNamespace(tree=tree, pid=next(PROCESSES))
        self.cpu = 0.0
        self.others: list[ScriptedRunner] = []
        self.burns = 0.0
        self.reported = OutputReport(
            type="tensor", device="cpu", layout="strided", address=64, **OUTPUT
        )
        self._script = script
        self._log = log
        self._calls = 0
        self.held: list[int] = []
        self.dropped: list[int] = []
        self.max_held = 0
        self.empty_call_s = 0.0

    def timed_call(
        self, fields: Any, write_inputs: Any = lambda: True, finish: Any = lambda _: None
    ) -> CallTiming:
        self._calls += 1
        assert write_inputs()
        self.dropped = self.held
        finish(self._calls)
        self.held = [self._calls]
        for other in self.others:
            other.cpu += other.burns
        self._log.append(("call", {"runner": self.name, **fields}))
        total, outside = self._script(self._calls)
        return CallTiming(total, outside, Result(outputs=[self.reported], launches=1))

    def reported_outputs(self, count: int) -> ReportedOutputs:
        return ReportedOutputs([PLACES[self.name] + self._calls] * count, [])

    def forbid_processes(self) -> None:
        self._log.append(("forbid_processes", {"runner": self.name}))

    def allow_processes(self) -> None:
        self._log.append(("allow_processes", {"runner": self.name}))


class Scripted(RunnerPool):
    """A pool of scripted runners; its scripted judge logs every request."""

    @classmethod
    def of(cls, plan: TimingPlan, eager: Any, candidate: Any) -> Scripted:
        request = a_request(PROBLEM, "def work(x):\n    return x\n", timing=plan)
        host: Any = SimpleNamespace(cores=Cores((0,), (1,)), device=CPU)
        context = EvaluationContext(host, request, ROOT, lambda *_: None, lambda: None)
        log: list[Any] = []
        made = cls(context, ScriptedJudge(context, log))
        made.log, made.aliases, made.moved, made.outputs_size = log, False, 0, 0
        made.judge.sample = made.sample  # type: ignore[method-assign]
        made.runners = {  # type: ignore[assignment]
            "eager": ScriptedRunner("eager", eager, log),
            "candidate": ScriptedRunner("candidate", candidate, log),
        }
        return made

    def sample(
        self, case: Case, variation: str, repeat: int = 0, *, timed: bool = False
    ) -> InputSampleInfo:
        del case
        assert timed
        return sample(
            f"{variation} {repeat}",
            places=OutputPlaces(self.aliases, [], [], []),
            size=self.moved or 4096,
            output_bytes=self.outputs_size or 16,
        )

    def reserve_inputs(self, runner: Any, size: int, heap: int = 0) -> None:
        pass

    def answers(self, **verdict: Any) -> None:
        """Let the judge answer so to every call."""
        self.judge.verdict = TimedAnswer(**{**NOTHING_SEEN, **verdict})  # type: ignore[attr-defined]

    def time(self) -> CaseTimes:
        """Time the only case; keep the log after the warm-up of three calls per runner."""
        times = time_cases(self, DEFAULT, [Case(name="one")], NAMES)[0]
        calls = [i for i, (kind, _) in enumerate(self.log) if kind == "call"]
        self.log = self.log[calls[5] + 1 :]
        return times

    def logged(self, kind: str) -> list[dict[str, Any]]:
        return [fields for each, fields in self.log if each == kind]


def plan(blocks: int = 4) -> TimingPlan:
    return TimingPlan(min_blocks=blocks, max_blocks=blocks, max_s=1e6)


def steady(seconds: float, outside: float = 0.0) -> Any:
    return lambda _: (seconds, outside)


def noisy(seconds: float, seed: int) -> Any:
    noise = random.Random(seed)
    return lambda _: (seconds * (1 + 0.1 * noise.random()), 0.0)


def test_a_block_calls_each_runner_in_order_and_in_reverse():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.time()

    calls = [fields["runner"] for fields in session.logged("call")]
    assert len(calls) == 16
    for block in (calls[i : i + 4] for i in range(0, 16, 4)):
        assert block == block[::-1]
        assert set(block) == set(NAMES)


def test_every_timed_call_of_a_small_case_is_compared():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.time()

    timed = session.logged("finish_timed")
    assert all(fields["keep"] == (fields["runner"] == "candidate") for fields in timed)
    assert [fields["compare"] for fields in timed] == [False, True] * 8


def test_outputs_are_read_at_the_addresses_that_their_runner_reported():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.time()

    calls = dict.fromkeys(NAMES, 3)  # of the warm-up
    for fields in session.logged("finish_timed"):
        name = fields["runner"]
        calls[name] += 1
        assert fields["addresses"] == [PLACES[name] + calls[name]]
    assert list(calls.values()) == [11, 11]


def test_secret_windows_of_the_candidates_large_inputs_are_compared():
    session = Scripted.of(plan(20), steady(2e-3), steady(1e-3))
    session.moved = size = ALL_BYTES + 1
    session.time()

    timed = session.logged("finish_timed")
    assert not any(fields["look"] for fields in timed if fields["runner"] == "eager")
    looks = [fields["look"] for fields in timed if fields["runner"] == "candidate"]
    assert {len(look) for look in looks} == {INSPECTED_WINDOWS}
    windows = [tuple(window) for look in looks for window in look]
    assert len(set(windows)) > 0.9 * len(windows)
    assert all(start >= 0 and stop - start == WINDOW_BYTES for start, stop in windows)
    assert min(windows)[0] < size / 20
    assert size * 0.95 < max(stop for _, stop in windows) <= size


def test_small_inputs_of_the_candidate_are_compared_as_a_whole():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.moved = ALL_BYTES
    session.time()

    timed = session.logged("finish_timed")
    assert [f["look"] for f in timed if f["runner"] == "candidate"] == [None] * 8


def test_the_result_of_a_comparison_is_kept():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.answers(
        mutated=["input 0"], wrong="values", message="at [0]", misplaced=["shared memory"]
    )
    times = session.time()

    assert times.wrong[0] == "at [0]"
    assert times.memory.mutated == ["input 0"]
    assert times.memory.misplaced == ["shared memory"]


def test_reported_outputs_of_a_timed_call_must_have_the_expected_type():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    runner: Any = session.runners["candidate"]
    runner.reported = runner.reported.model_copy(update={"dtype": "float16"})

    assert session.time().wrong


def test_the_stop_rule_sees_the_width_and_not_the_estimate():
    blocks = []
    for factor in (0.5, 1.0, 1.02, 4.0):
        wide = TimingPlan(min_blocks=8, max_blocks=400, max_s=1e6, target_ci_half_width=0.0015)
        blocks.append(Scripted.of(wide, noisy(1.0, 1), noisy(factor, 2)).time().blocks)

    assert len(set(blocks)) == 1, blocks
    assert 8 < blocks[0] < 400


def test_candidate_cpu_time_during_baseline_calls_is_recorded():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    eager, candidate = (session.runners[name] for name in NAMES)
    eager.others, candidate.burns = [candidate], 1e-3  # type: ignore[attr-defined]

    assert session.time().disturbed == pytest.approx([0.5] * 8)


def scored(eager: Any, candidate: Any) -> Any:
    times = Scripted.of(plan(), eager, candidate).time()
    return compare_strict(times, "eager", 0.0, ())


def test_untimed_cpu_beyond_the_baselines_is_charged_to_the_call():
    assert scored(steady(2e-3), steady(1e-3)).speedup == pytest.approx(2.0)
    # CPU time of the harness itself, with a little noise, is charged to neither implementation.
    usual = scored(steady(2e-3, 2e-4), steady(1e-3, 2e-4 + 1.9e-5))
    assert usual.speedup == pytest.approx(2.0)
    assert usual.candidate.median_us == pytest.approx(1000)
    for late in (5e-4, 1e-3, 3e-3):
        item = scored(steady(2e-3, 2e-4), steady(1e-3, 2e-4 + 2e-5 + late))
        assert item.candidate.median_us == pytest.approx(1000 + late * 1e6)
        assert item.speedup == pytest.approx(2e-3 / (1e-3 + late))


def test_untimed_cpu_of_some_calls_is_charged_to_those_calls():
    seldom = scored(steady(2e-3), lambda call: (1e-3, 1e-5 + (call % 2) * 1e-3))
    rows = seldom.raw_us

    assert seldom.speedup == pytest.approx(2e-3 / (1.5e-3), rel=0.1)
    assert {ours for row in rows for ours in row[1:3]} == {1000.0, 2000.0}


def test_the_baseline_with_least_untimed_cpu_sets_the_usual_amount():
    outside = {"eager": [0.0] * 8, "compile": [1e-3] * 8, "candidate": [1e-3 + 1e-5] * 8}
    times = CaseTimes("one", dict.fromkeys(outside, [1e-3] * 8), outside)

    item = compare_strict(times, "eager", 0.0, ())
    assert item.candidate.median_us == pytest.approx(2000)
    assert item.speedup == pytest.approx(0.5)


def test_a_short_call_is_faster_only_beyond_the_undetectable_work():
    times = Scripted.of(plan(), steady(9e-5), steady(8.8e-5)).time()
    item = compare_strict(times, "eager", 0.0, ())
    assert is_short(times, "eager")
    assert item.speedup == item.speedup_high == pytest.approx(9 / 8.8)
    assert item.speedup_low == pytest.approx(9 / 9.3)
    assert item.conclusion == "no measurable difference"

    # What the harness does beside a call hides no work in it.
    for outside in (0.0, 2e-3):
        times = Scripted.of(plan(), steady(1.05e-3, outside), steady(1e-3, outside)).time()
        item = compare_strict(times, "eager", 0.0, ())
        assert not is_short(times, "eager")
        assert (item.speedup_low, item.conclusion) == (pytest.approx(1.05), "faster")


# Process replicates -------------------------------------------------------------------------------


def timed_in_replicates(moved: int, seconds: float) -> tuple[CaseTimes, list[str]]:
    """Time a case that moves so many bytes; return its times, and how its runners restarted."""
    session = Scripted.of(plan(40), steady(seconds), steady(seconds))
    session.moved = moved
    restarts: list[str] = []
    times = time_cases(session, DEFAULT, [Case(name="one")], NAMES, noted(session, restarts))[0]
    return times, restarts


def noted(session: Scripted, restarts: list[str]) -> Restart:
    """Return a restart function that records whether it cached or replaced the runners."""

    def restart(*, fresh: bool) -> None:
        restarts.append("fresh" if fresh else "again")
        for runner in session.runners.values():
            runner.child = SimpleNamespace(tree=runner.child.tree, pid=next(PROCESSES))  # type: ignore[assignment]

    return restart


@pytest.mark.parametrize(
    ("moved", "seconds", "blocks"),
    # Half of a replicate's share of the 40 blocks is enough.
    [(16 << 20, 5e-4, 6), (1 << 20, 2e-3, 6)],
)
def test_memory_bound_or_long_calls_are_timed_in_several_replicates(moved, seconds, blocks):
    times, restarts = timed_in_replicates(moved, seconds)

    assert restarts == ["again"] * (PLANNED_REPLICATES - 1)
    assert times.replicate_starts == [number * blocks for number in range(PLANNED_REPLICATES)]
    assert times.blocks == PLANNED_REPLICATES * blocks


def test_replicates_that_disagree_are_followed_by_more():
    restarts: list[str] = []
    uneven: Any = lambda _: (2e-3 * (1.15 if len(restarts) % 2 else 1.0), 0.0)  # noqa: E731
    session = Scripted.of(plan(40), steady(2e-3), uneven)
    session.moved = 1 << 20
    times = time_cases(session, DEFAULT, [Case(name="one")], NAMES, noted(session, restarts))[0]
    assert len(times.replicate_starts) == MAX_REPLICATE_FACTOR * PLANNED_REPLICATES
    assert restarts == ["again"] * (PLANNED_REPLICATES - 1) + ["fresh"] * (
        PLANNED_REPLICATES * (MAX_REPLICATE_FACTOR - 1)
    )


def test_short_or_compute_bound_calls_are_timed_in_one_replicate():
    for moved, seconds in ((1 << 20, 9e-4), (1 << 20, 1e-6)):
        times, restarts = timed_in_replicates(moved, seconds)
        assert (times.replicate_starts, restarts) == ([0], [])


def test_without_a_restart_function_there_is_one_replicate():
    session = Scripted.of(plan(8), steady(1e-3), steady(1e-3))
    session.moved = 16 << 20
    assert time_cases(session, DEFAULT, [Case(name="one")], NAMES)[0].replicate_starts == [0]


def test_runners_may_start_no_process_from_first_to_last_block_of_a_replicate():
    session = Scripted.of(plan(6), lambda _: (1e-3, 0.0), lambda _: (1e-3, 0.0))
    time_cases(session, DEFAULT, [Case(name="one")], NAMES)

    kinds = [
        kind for kind, _ in session.log if kind in ("call", "forbid_processes", "allow_processes")
    ]
    assert [fields["runner"] for fields in session.logged("forbid_processes")] == NAMES
    assert [fields["runner"] for fields in session.logged("allow_processes")] == NAMES
    first, last = kinds.index("forbid_processes"), kinds.index("allow_processes")
    assert kinds[first : first + 2] == ["forbid_processes"] * 2
    assert kinds[last:] == ["allow_processes"] * 2
    assert kinds[first + 2 : last] == ["call"] * 24
