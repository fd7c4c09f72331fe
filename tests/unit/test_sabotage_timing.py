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
from tilewright.evaluator.evaluation import Drawn, Evaluation
from tilewright.evaluator.host import Cores
from tilewright.evaluator.sides import Timed
from tilewright.evaluator.testimony import OutputSaid, Result
from tilewright.evaluator.timing import CaseTimes, time_case
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
NAMES = ["eager", "candidate"]


def drawn(name: str) -> Drawn:
    known: dict[str, Any] = {
        "name": name, "case": "one", "contents": "nominal", "tree": TREE, "grad_outputs": TREE,
        "size": 4096, "room": 4096, "outputs": [OUTPUT], "skipped": "", "random": False,
    }  # fmt: skip
    return Drawn(**{item.name: known.get(item.name, 0) for item in dataclasses.fields(Drawn)})


class ScriptedSide:
    """A side whose calls take what the script says: (total, copy, outside), in seconds."""

    def __init__(self, name: str, script: Any, log: list[Any]) -> None:
        self.name = name
        self.stage = "load"
        self.child = SimpleNamespace(cpu_s=lambda: self.cpu, look=lambda: None)
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
        self._log.append(("call", {"side": self.name, "base": fields["base"]}))
        self._calls += 1
        total, copy, outside = self._script(self._calls)
        return Timed(total, copy, outside, Result(outputs=[self.said], launches=1))


class Scripted(Evaluation):
    """An evaluation that writes down what it is told to do."""

    @classmethod
    def of(cls, plan: TimingPlan, eager: Any, candidate: Any) -> Scripted:
        request = a_request(PROBLEM, "def work(x):\n    return x\n", timing=plan)
        host: Any = SimpleNamespace(cores=Cores((0,), (1,)))
        made = cls(host, request, ROOT, lambda *_: None, lambda: None)
        made.log = []
        made.answer = {"mutated": [], "wrong": "", "message": ""}
        made.sides = {  # type: ignore[assignment]
            "eager": ScriptedSide("eager", eager, made.log),
            "candidate": ScriptedSide("candidate", candidate, made.log),
        }
        return made

    def draw(self, case: Case, contents: str, repeat: int = 0) -> Drawn:  # noqa: ARG002
        return drawn(f"{contents} {repeat}")

    def make_room(self, side: Any, inputs: int, outputs: int) -> None:
        pass

    def ask(self, kind: str, fields: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.log.append((kind, fields))
        if fields.get("next"):
            self.log.append(("publish", fields["next"]))
        return self.answer

    def time(self) -> CaseTimes:
        """Time the only case; of the log keep what follows the warm-up (three calls a side)."""
        times = time_case(self, Case(name="one"), NAMES)
        calls = [i for i, (kind, _) in enumerate(self.log) if kind == "call"]
        self.log = self.log[calls[5] + 1 :]
        return times

    def logged(self, kind: str) -> list[dict[str, Any]]:
        return [fields for each, fields in self.log if each == kind]


def plan(blocks: int = 4) -> TimingPlan:
    return TimingPlan(min_blocks=blocks, max_blocks=blocks, max_s=1e6)


def steady(seconds: float, copy: float = 100e-6, outside: float = 0.0) -> Any:
    return lambda _: (seconds + copy, copy, outside)


def noisy(seconds: float, seed: int) -> Any:
    noise = random.Random(seed)
    return lambda _: (seconds * (1 + 0.02 * noise.random()), 0.0, 0.0)


def test_in_a_block_each_side_is_called_in_order_and_in_reverse():
    evaluation = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    evaluation.time()

    calls = [fields["side"] for fields in evaluation.logged("call")]
    assert len(calls) == 16
    for block in (calls[i : i + 4] for i in range(0, 16, 4)):
        assert block == block[::-1]
        assert set(block) == set(NAMES)


def test_both_calls_of_a_pair_get_the_same_fresh_contents_at_the_same_address():
    evaluation = Scripted.of(plan(8), steady(2e-3), steady(1e-3))
    evaluation.time()

    published = evaluation.logged("publish")
    assert len(published) == 32
    for first, second in zip(published[::2], published[1::2], strict=True):
        assert (first["draw"], first["base"]) == (second["draw"], second["base"])
        assert first["stir"] is not None
        assert second["stir"] is None
    assert [(each["side"], each["base"]) for each in published] == [
        (each["side"], each["base"]) for each in evaluation.logged("call")
    ]
    assert len({fields["stir"] for fields in published[::2]}) == 16
    assert len({fields["base"] for fields in published}) > 1


def test_every_timed_call_of_a_small_case_is_compared():
    evaluation = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    times = evaluation.time()

    timed = evaluation.logged("timed")
    assert all(fields["keep"] for fields in timed)
    assert [fields["compare"] for fields in timed] == [False, True] * 8
    assert times.checked == 8


def test_what_the_comparison_says_is_kept():
    evaluation = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    evaluation.answer = {"mutated": ["input 0"], "wrong": "values", "message": "at [0]"}
    times = evaluation.time()

    assert times.wrong[0] == "at [0]"
    assert times.mutated == ["input 0"]


def test_what_a_timed_call_says_of_its_outputs_must_fit():
    evaluation = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    side: Any = evaluation.sides["candidate"]
    side.said = side.said.model_copy(update={"dtype": "float16"})

    assert evaluation.time().wrong


def test_the_stop_rule_sees_the_width_and_not_the_estimate():
    blocks = []
    for factor in (0.5, 1.0, 1.02, 4.0):
        wide = TimingPlan(min_blocks=8, max_blocks=400, max_s=1e6, target_half_width=0.0015)
        blocks.append(Scripted.of(wide, noisy(1.0, 1), noisy(factor, 2)).time().blocks)

    assert len(set(blocks)) == 1, blocks
    assert 8 < blocks[0] < 400


def test_what_the_candidate_does_in_the_baselines_turn_is_noted():
    evaluation = Scripted.of(plan(), steady(2e-3, copy=0.0), steady(1e-3))
    eager, candidate = (evaluation.sides[name] for name in NAMES)
    eager.others, candidate.burns = [candidate], 1e-3  # type: ignore[attr-defined]

    assert evaluation.time().disturbed == pytest.approx([0.5] * 8)
