"""The timing of a case over scripted sides: a clock that only moves where the script says.

`python -m benchmarks --only sabotage` plants bugs in the judge and demands that these find them.
"""

from __future__ import annotations

import dataclasses
import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.courtroom import ROOT, a_request
from tilewright.evaluator import verdict
from tilewright.evaluator.calibration import DEFAULT, Calibration
from tilewright.evaluator.evaluation import Drawn, Evaluation
from tilewright.evaluator.host import Cores
from tilewright.evaluator.sides import Timed
from tilewright.evaluator.testimony import OutputSaid, Result
from tilewright.evaluator.timing import CaseTimes, compare, time_case
from tilewright.evaluator.verdict import Collected
from tilewright.records import Case, Correct, Failed, Rejected, TimingPlan

PROBLEM = """import torch

CASES = [{"name": "one", "n": 4}]


def inputs(case, generator):
    return (torch.ones(4),)


def reference(x):
    return x + 1
"""
OUTPUT = {"dtype": "float32", "shape": [4]}
TREE = {"t": "tuple", "v": []}
NAMES = ["eager", "candidate"]


def drawn(name: str) -> Drawn:
    known: dict[str, Any] = {
        "name": name, "case": "one", "contents": "nominal", "tree": TREE, "grad_outputs": TREE,
        "size": 4096, "room": 4096, "outputs": [OUTPUT], "skipped": "", "random": False,
    }  # fmt: skip
    return Drawn(**{item.name: known.get(item.name, 0) for item in dataclasses.fields(Drawn)})


class ScriptedSide:
    """A side whose calls take what the script says, in seconds."""

    def __init__(self, name: str, script: Any, log: list[Any]) -> None:
        self.name = name
        self.stage = "load"
        self.child = SimpleNamespace(cpu_s=lambda: self.cpu)
        self.cpu = 0.0
        self.others: list[ScriptedSide] = []
        self.burns = 0.0
        self.said = OutputSaid(type="tensor", device="cpu", layout="strided", offset=0, **OUTPUT)
        self._script = script
        self._log = log
        self._calls = 0

    def timed_call(self, fields: Any, snapshot: Any = lambda: None) -> Timed:
        snapshot()
        for other in self.others:
            other.cpu += other.burns
        self._log.append(("call", self.name, fields["base"]))
        self._calls += 1
        result = Result(outputs=[self.said], launches=1)
        return Timed(self._script(self._calls), 100e-6, 0.0, result)


class Scripted(Evaluation):
    """An evaluation that writes down what it is told to do."""

    @classmethod
    def of(cls, plan: TimingPlan, **scripts: Any) -> Scripted:
        request = a_request(PROBLEM, "def work(x):\n    return x\n", timing=plan)
        host: Any = SimpleNamespace(cores=Cores((0,), (1,)))
        made = cls(host, request, ROOT, lambda *_: None, lambda: None)
        made.log = []
        sides = {name: ScriptedSide(name, script, made.log) for name, script in scripts.items()}
        made.sides = sides  # type: ignore[assignment]
        return made

    def draw(self, case: Case, contents: str, repeat: int = 0) -> Drawn:  # noqa: ARG002
        return drawn(f"{contents} {repeat}")

    def make_room(self, side: Any, inputs: int, outputs: int) -> None:
        pass

    def ask(self, kind: str, fields: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.log.append((kind, fields))
        return {"mutated": [], "wrong": "", "message": ""}


def plan(blocks: int = 4) -> TimingPlan:
    return TimingPlan(min_blocks=blocks, max_blocks=blocks, max_s=1e6)


def steady(seconds: float) -> Any:
    return lambda _: seconds


def after_warm_up(log: list[Any]) -> list[Any]:
    """Return what was done after the last side was warm: three calls each here."""
    calls = [i for i, item in enumerate(log) if item[0] == "call"]
    return log[calls[5] + 1 :]


def test_a_block_is_reference_candidate_candidate_reference():
    evaluation = Scripted.of(plan(), eager=steady(2e-3), candidate=steady(1e-3))
    time_case(evaluation, Case(name="one"), NAMES)

    calls = [item[1] for item in after_warm_up(evaluation.log) if item[0] == "call"]
    assert calls == ["eager", "candidate", "candidate", "eager"] * 4


def test_both_calls_of_a_pair_get_the_same_fresh_contents_at_the_same_address():
    evaluation = Scripted.of(plan(8), eager=steady(2e-3), candidate=steady(1e-3))
    time_case(evaluation, Case(name="one"), NAMES)

    done = after_warm_up(evaluation.log)
    published = [fields for kind, *rest in done if kind == "publish" for fields in rest]
    bases = [item[2] for item in done if item[0] == "call"]
    assert len(published) == 32
    for first, second in zip(published[::2], published[1::2], strict=True):
        assert (first["draw"], first["base"]) == (second["draw"], second["base"])
        assert first["stir"] is not None
        assert second["stir"] is None
    assert bases == [fields["base"] for fields in published]
    assert len({fields["stir"] for fields in published[::2]}) == 16
    assert len(set(bases)) > 1


def test_every_timed_call_of_a_small_case_is_compared():
    evaluation = Scripted.of(plan(), eager=steady(2e-3), candidate=steady(1e-3))
    times = time_case(evaluation, Case(name="one"), NAMES)

    kinds = [item[0] for item in evaluation.log]
    kept = [fields for kind, *rest in evaluation.log if kind == "timed" for fields in rest]
    assert 8 == kinds.count("compare_timed") == times.checked
    assert all(fields["keep"] for fields in kept)


def test_what_a_timed_call_says_of_its_outputs_must_fit():
    evaluation = Scripted.of(plan(), eager=steady(2e-3), candidate=steady(1e-3))
    side: Any = evaluation.sides["candidate"]
    side.said = side.said.model_copy(update={"dtype": "float16"})

    assert time_case(evaluation, Case(name="one"), NAMES).wrong


def noisy(seconds: float, seed: int) -> Any:
    noise = random.Random(seed)
    return lambda _: seconds * (1 + 0.02 * noise.random())


def test_the_stop_rule_sees_the_width_and_not_the_estimate():
    blocks = []
    for factor in (0.5, 1.0, 1.02, 4.0):
        wide = TimingPlan(min_blocks=8, max_blocks=400, max_s=1e6, target_half_width=0.0015)
        evaluation = Scripted.of(wide, eager=noisy(1.0, 1), candidate=noisy(factor, 2))
        blocks.append(time_case(evaluation, Case(name="one"), NAMES).blocks)

    assert len(set(blocks)) == 1, blocks
    assert 8 < blocks[0] < 400


def times_of(eager: float, candidate: float, copy: float = 100e-6) -> CaseTimes:
    return CaseTimes(
        "one", totals={"eager": [eager] * 40, "candidate": [candidate] * 40},
        copies=[copy] * 40, outside={"eager": [0.0] * 40, "candidate": [0.0] * 40}, blocks=20,
    )  # fmt: skip


@pytest.mark.parametrize("official", [False, True])
def test_the_copy_is_taken_off_once_and_the_faster_side_is_faster(official):
    item = compare(times_of(1100e-6, 600e-6), "eager", 0.01, (), official=official)

    assert pytest.approx(item.speedup) == 2.0
    assert pytest.approx(item.reference.median_us) == 1000.0
    assert pytest.approx(item.candidate.median_us) == 500.0
    assert ("no interval" if official else "faster") == item.decision


def test_the_interval_holds_what_differs_between_processes():
    item = compare(times_of(1100e-6, 1100e-6), "eager", 0.02, (), official=False)

    assert item.speedup_low is not None
    assert item.speedup_low == pytest.approx(0.9616, abs=1e-4)
    assert item.speedup_high == pytest.approx(1.04, abs=1e-3)
    assert 0.02 > DEFAULT.sigma(5000.0) > 0.01


def test_what_the_candidate_does_in_the_baselines_turn_is_noted():
    evaluation = Scripted.of(plan(), eager=steady(2e-3), candidate=steady(1e-3))
    eager, candidate = (evaluation.sides[name] for name in NAMES)
    eager.others, candidate.burns = [candidate], 1e-3  # type: ignore[attr-defined]
    times = time_case(evaluation, Case(name="one"), NAMES)

    assert pytest.approx(times.disturbed) == [0.5] * 8


def judged(times: CaseTimes, outcome: Any = None, checks: Any = None) -> Any:
    evaluation = Scripted.of(plan(), eager=steady(2e-3), candidate=steady(1e-3))
    collected = Collected(times=[times])
    sigmas = Calibration((0.01, 0.01, 0.01), measured=True)
    return verdict.report(evaluation, collected, outcome or Correct(), sigmas, checks=checks)


def test_a_quiet_faster_candidate_is_correct_with_its_speed_up():
    report = judged(times_of(2100e-6, 1100e-6))

    assert report.verdict == "correct"
    assert pytest.approx(report.speedup) == 2.0


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda t: t.outside.update(candidate=[2e-3] * 40), "outside work"),
        (lambda t: t.disturbed.extend([0.5] * 40), "disturbs baseline"),
        (lambda t: t.mutated.append("input 0"), "input mutation"),
    ],
)
def test_what_is_seen_while_timing_rejects(spoil, code):
    times = times_of(2100e-6, 1100e-6)
    spoil(times)
    report = judged(times)

    assert report.verdict == "rejected"
    assert isinstance(report.outcome, Rejected)
    assert [code] == [finding.code for finding in report.outcome.findings]
    assert report.speedup is None


def test_cpu_that_the_baselines_side_uses_as_well_is_no_finding():
    times = times_of(2100e-6, 1100e-6)
    times.outside = {"eager": [2e-3] * 40, "candidate": [2e-3] * 40}

    assert judged(times).verdict == "correct"


def test_who_did_not_come_through_has_no_speed_up():
    failed = Failed(stage="exit", reason="memory corruption", message="signal 11")
    report = judged(times_of(2100e-6, 1100e-6), failed)

    assert report.verdict == "failed"
    assert report.speedup is None
