"""The judge's process, its `main` in a thread: frames in, answers out, no candidate anywhere."""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.roles import Arenas, Role
from tilewright.contestant import calls
from tilewright.contestant.tensors import build
from tilewright.evaluator.judge.main import main

FUNCTION = """
import torch

def inputs(case, generator):
    return torch.randn(case["n"], 8, generator=generator), torch.randn(8, generator=generator)

def reference(x, y):
    return torch.relu(x + y)
"""
MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.gain = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        return self.first(x) * self.gain

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""
PLAIN = {"donates": [], "grads": [], "mode": "train", "init_seed": 5, "threads": 1}
FLOAT = "float32"


class Play:
    """A judge with one problem, and a side whose outputs the test writes."""

    def __init__(self) -> None:
        self.role = Role(main)
        self.arenas = Arenas()

    def ask(self, kind: str, body: bytes = b"", **fields: Any) -> dict[str, Any]:
        frame = self.role.ask(kind, fields, body)
        assert frame.kind == "answer", frame
        return frame.fields

    def load(self, source: str = FUNCTION, kind: str = "function", **changes: Any) -> Any:
        fields = {**PLAIN, "problem_kind": kind, "tolerance": None, **changes}
        return self.role.ask("problem", fields, source.encode())

    def map(self, side: str = "candidate") -> None:
        fields = {"side": side, **self.arenas.fields}
        assert {} == self.role.ask("map", fields, fds=self.arenas.fds).fields

    def draw(self, contents: str = "nominal", seed: int = 3) -> dict[str, Any]:
        fields = {"params": {"n": 4}, "contents": contents, "seed": seed, "forward_seed": 1}
        return self.ask("draw", draw="d", **fields)

    def inputs(self, drawn: dict[str, Any], base: int = 0) -> list[torch.Tensor]:
        self.ask("publish", draw="d", side="candidate", base=base)
        return list(build(drawn["tree"], self.arenas.inputs, base))

    def put(self, *outputs: torch.Tensor) -> list[dict[str, Any]]:
        """Write outputs into the slot as a contestant does; return what it says of them."""
        first = torch.frombuffer(self.arenas.inputs, dtype=torch.uint8, count=1).data_ptr()
        call = calls.Call((), (), (), None, 0, len(self.arenas.outputs), first, 1)
        described = calls.store(outputs, call, self.arenas.outputs)
        return [
            {key: value for key, value in item.items() if key != "alias"} for item in described
        ]

    def check(self, *outputs: torch.Tensor, base: int = 0) -> dict[str, Any]:
        return self.ask("check", draw="d", side="candidate", base=base, outputs=self.put(*outputs))

    def timed(self, key: str, *outputs: torch.Tensor, **changes: Any) -> dict[str, Any]:
        fields = {"draw": "d", "side": "candidate", "base": 0, "keep": True, "expect": None}
        return self.ask("timed", key=key, outputs=self.put(*outputs), **{**fields, **changes})

    def plan(self, weights: dict[str, torch.Tensor], seed: int = 1) -> dict[str, Any]:
        said = [[name, list(value.shape), FLOAT] for name, value in weights.items()]
        return self.ask("plan_weights", json.dumps(said).encode(), side="candidate", seed=seed)

    def published(self) -> dict[str, torch.Tensor]:
        tree = self.ask("publish_weights", side="candidate")["tree"]
        values = build(tree, self.arenas.inputs, 0)
        return {name: value.clone() for name, value in values.items()}

    def close(self) -> None:
        self.role.close()
        self.arenas.close()


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Play]:
    monkeypatch.setitem(sys.modules, "tilewright_problem", None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = torch.get_num_threads()
    play = Play()
    yield play
    play.close()
    torch.set_num_threads(threads)


def seeded(source: str = MODULE) -> torch.nn.Module:
    """Build the module that the judge holds, with the weights of the init seed."""
    space: dict[str, Any] = {}
    exec(source, space)
    torch.manual_seed(PLAIN["init_seed"])
    model: torch.nn.Module = space["Model"]()
    return model


def test_it_says_that_it_is_ready(judge):
    assert "ready" == judge.role.ready.kind
    assert {"applied": {"limits": ""}} == judge.role.ready.fields


def test_a_right_output_is_right_and_a_wrong_one_is_not(judge):
    answer = judge.load()
    assert (False, "answer") == (answer.fields["module"], answer.kind)
    judge.map()
    drawn = judge.draw()
    x, y = judge.inputs(drawn)

    assert ["float64", "1", "", False] == [
        drawn[name] for name in ("oracle", "structure", "skipped", "random")
    ]
    assert [{"dtype": FLOAT, "shape": [4, 8]}] == drawn["outputs"]
    right = judge.check(torch.relu(x + y))
    assert ("", []) == (right["wrong"], right["mutated"])
    assert 0 <= right["error"] < 1
    wrong = judge.check(torch.relu(x + y) + 1e-3)
    assert "values" == wrong["wrong"]
    assert wrong["error"] > 1


def test_the_answer_to_a_draw_holds_no_values(judge):
    judge.load()
    text = json.dumps(judge.draw(seed=987654321987))

    assert "987654321987" not in text
    assert set(json.loads(text)) == {
        *("tree", "grad_outputs", "grads", "size", "outputs", "room", "structure", "oracle"),
        *("random", "skipped", "call_s", "movable", "aliases"),
    }


def test_what_is_compared_lies_where_the_judge_expects_it(judge):
    judge.load()
    judge.map()
    x, y = judge.inputs(judge.draw())
    described = judge.put(torch.zeros(4, 8))
    judge.arenas.outputs[4096 : 4096 + 128] = torch.relu(x + y).numpy().tobytes()
    described[0]["offset"] = 4096

    answer = judge.ask("check", draw="d", side="candidate", base=0, outputs=described)

    assert "values" == answer["wrong"]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda item: [item, item], "count"),
        (lambda item: [], "count"),  # noqa: ARG005
        (lambda item: [{**item, "shape": [8, 4]}], "shape"),
        (lambda item: [{**item, "dtype": "float64"}], "dtype"),
    ],
)
def test_what_is_said_must_fit(judge, change, wrong):
    judge.load()
    judge.map()
    x, y = judge.inputs(judge.draw())
    (item,) = judge.put(torch.relu(x + y))
    answer = judge.ask("check", draw="d", side="candidate", base=0, outputs=change(item))

    assert wrong == answer["wrong"]
    assert "expected" in answer["message"]


def test_keys_of_a_dict_must_agree(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "{'a': x, 'b': y}"))
    judge.map()
    x, y = judge.inputs(judge.draw())
    outputs = judge.put(x, y)
    assert "count" == judge.check(x, y)["wrong"]
    outputs[0]["structure"] = "a,b"

    answer = judge.ask("check", draw="d", side="candidate", base=0, outputs=outputs)

    assert "" == answer["wrong"]


def test_empty_outputs_are_compared_too(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "(x[:0], x)"))
    judge.map()
    x, _ = judge.inputs(judge.draw())

    assert "" == judge.check(x[:0], x)["wrong"]
    assert "shape" == judge.check(x[:1], x)["wrong"]


def test_an_error_too_large_for_a_number_is_none(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "x * 0"))
    judge.map()
    x, _ = judge.inputs(judge.draw())
    answer = judge.check(torch.full_like(x, 1e30))

    assert ("values", None) == (answer["wrong"], answer["error"])


@pytest.mark.parametrize("base", [0, 4096])
def test_overwritten_inputs_and_guards_are_found(judge, base):
    judge.load()
    judge.map()
    drawn = judge.draw()
    x, y = judge.inputs(drawn, base)
    right = torch.relu(x + y)
    x[2, 3] += 1.0
    assert ["input 0"] == judge.check(right, base=base)["mutated"]
    x, y = judge.inputs(drawn, base)
    assert [] == judge.check(right, base=base)["mutated"]
    judge.arenas.inputs[base] ^= 0xFF
    assert ["memory around the inputs"] == judge.check(right, base=base)["mutated"]


def test_donated_inputs_may_be_overwritten(judge):
    judge.load(donates=["y"])
    judge.map()
    drawn = judge.draw()
    x, y = judge.inputs(drawn)
    right = torch.relu(x + y)
    y.zero_()

    assert [] == judge.check(right)["mutated"]
    assert drawn["aliases"]


def test_published_rules_use_their_tolerance(judge):
    judge.load(tolerance=1e-2)
    judge.map()
    drawn = judge.draw()
    x, y = judge.inputs(drawn)

    assert "float32" == drawn["oracle"]
    assert "" == judge.check(torch.relu(x + y) + 5e-3)["wrong"]
    assert "values" == judge.check(torch.relu(x + y) + 0.1)["wrong"]


def test_stirred_inputs_are_published_and_expected(judge):
    judge.load()
    judge.map()
    drawn = judge.draw()
    before = [value.clone() for value in judge.inputs(drawn)]
    judge.ask("publish", draw="d", side="candidate", base=0, stir=9)
    after = build(drawn["tree"], judge.arenas.inputs, 0)
    x, y = (value.clone() for value in after)
    assert not torch.equal(before[0], x)
    answer = judge.timed("candidate", torch.relu(x + y), expect="eager")
    assert [] == answer["mutated"]

    assert "" == judge.ask("compare_timed", draw="d", key="candidate", center="eager")["wrong"]


def test_timed_outputs_are_compared_with_the_baselines(judge):
    judge.load()
    judge.map()
    x, y = judge.inputs(judge.draw())
    right = torch.relu(x + y)
    for candidate, wrong in ((right, ""), (right + 1, "values"), (right * float("nan"), "nonfinite")):
        judge.timed("eager", right)
        judge.timed("candidate", candidate)
        compared = judge.ask("compare_timed", draw="d", key="candidate", center="eager")
        assert wrong == compared["wrong"]


def test_a_snapshot_is_no_view_of_the_slot(judge):
    judge.load()
    judge.map()
    x, y = judge.inputs(judge.draw())
    right = torch.relu(x + y)
    judge.timed("eager", right)
    judge.timed("candidate", right + 1)
    judge.put(right)

    compared = judge.ask("compare_timed", draw="d", key="candidate", center="eager")
    assert "values" == compared["wrong"]


def test_published_rules_compare_timed_outputs_by_their_tolerance(judge):
    judge.load(tolerance=1e-2)
    judge.map()
    x, y = judge.inputs(judge.draw())
    right = torch.relu(x + y)
    judge.timed("eager", right)
    judge.timed("candidate", right + 5e-3, keep=True)

    assert "" == judge.ask("compare_timed", draw="d", key="candidate", center="eager")["wrong"]


def test_mutation_in_a_timed_call_is_found_without_keeping_outputs(judge):
    judge.load()
    judge.map()
    x, _ = judge.inputs(judge.draw())
    x.zero_()

    assert ["input 0"] == judge.timed("candidate", x, keep=False)["mutated"]


@pytest.mark.parametrize(
    ("kind", "source", "message"),
    [
        ("problem", "raise RuntimeError('no luck')", "loading the problem: RuntimeError: no luck"),
        ("problem", MODULE.replace("Linear(8, 8)", "Linear(8, 'x')"), "building the reference"),
        ("draw", FUNCTION.replace('case["n"]', 'case["m"]'), "drawing inputs: KeyError"),
        ("draw", FUNCTION.replace("x + y", "x @ y.T @ y"), "running the reference"),
    ],
)
def test_a_problem_that_fails_says_so_and_the_judge_lives(judge, kind, source, message):
    answer = judge.load(source, "module" if "Model" in source else "function")
    if kind == "draw":
        assert "answer" == answer.kind
        fields = {"params": {"n": 4}, "contents": "nominal", "seed": 1, "forward_seed": 1}
        answer = judge.role.ask("draw", {"draw": "d", **fields})

    assert "problem_failed" == answer.kind
    assert message in answer.fields["message"]
    assert judge.load().kind == "answer"


def test_init_inputs_are_handed_over(judge):
    source = MODULE.replace("return []", "return [torch.arange(3.0), 7]").replace(
        "(self)", "(self, table, n)", 1
    )
    answer = judge.load(source, "module").fields
    judge.map()
    judge.ask("publish_init", side="candidate")
    table, n = build(answer["init"], judge.arenas.inputs, 0)

    assert ([0.0, 1.0, 2.0], 7) == (table.tolist(), n)
    assert answer["module"]
    assert answer["init_bytes"] >= 12


def test_new_weights_reach_both_sides(judge):
    judge.load(MODULE, "module")
    judge.map()
    model = seeded()
    plan = judge.plan(dict(model.state_dict()))
    assert {"need": [], "count": 3} == plan
    applied = judge.ask("apply_weights", sides=["candidate"])
    assert [] == applied["lacking"]
    assert applied["bytes"] >= 4 * (64 + 8 + 8)
    x = judge.inputs(judge.draw())[0].clone()
    assert "values" == judge.check(model(x).detach())["wrong"]
    fresh = judge.published()
    model.load_state_dict(fresh)
    judge.inputs(judge.draw())

    assert "" == judge.check(model(x).detach())["wrong"]
    assert not torch.equal(torch.ones(8), fresh["gain"])


def test_weights_can_be_taken_back(judge):
    judge.load(MODULE, "module")
    judge.map()
    model = seeded()
    judge.plan(dict(model.state_dict()))
    judge.ask("apply_weights", sides=["candidate"])
    judge.ask("reset_weights")
    x = judge.inputs(judge.draw())[0]

    assert "" == judge.check(model(x).detach())["wrong"]


def test_renamed_weights_are_found_by_value(judge):
    judge.load(MODULE, "module")
    judge.map()
    theirs = {f"my.{name}": value for name, value in seeded().state_dict().items()}
    plan = judge.plan(theirs)
    assert sorted(theirs) == sorted(plan["need"])
    judge.put(*[theirs[name].detach() for name in plan["need"]])
    from tilewright.contestant.tensors import Layout

    layout = Layout()
    layout.describe({name: theirs[name].detach() for name in plan["need"]})
    layout.write(judge.arenas.outputs)
    judge.ask("match_weights", side="candidate", names=plan["need"])

    assert [] == judge.ask("apply_weights", sides=["candidate"])["lacking"]
    assert set(theirs) == set(judge.published())


def test_weights_that_a_side_lacks_stay_but_defaults_never(judge):
    judge.load(MODULE, "module")
    judge.map()
    model = seeded()
    judge.plan({"first.bias": model.first.bias})
    lacking = judge.ask("apply_weights", sides=["candidate"])["lacking"]
    assert ["first.weight", "gain"] == lacking
    assert {"first.bias"} == set(judge.published())
    model.load_state_dict(judge.published(), strict=False)
    x = judge.inputs(judge.draw())[0]

    # The gain was one everywhere: who skipped it must be wrong now.
    assert "values" == judge.check(model(x).detach())["wrong"]


def test_tied_weights_stay_tied(judge):
    source = MODULE.replace(
        "self.gain =", "self.second = torch.nn.Linear(8, 8)\n"
        "        self.second.weight = self.first.weight\n        self.gain ="
    ).replace("self.first(x)", "self.second(self.first(x))")
    judge.load(source, "module")
    judge.map()
    model = seeded(source)
    judge.plan(dict(model.state_dict()))
    assert [] == judge.ask("apply_weights", sides=["candidate"])["lacking"]
    model.load_state_dict(judge.published(), strict=False)
    x = judge.inputs(judge.draw())[0]

    assert "" == judge.check(model(x).detach())["wrong"]


def test_a_second_evaluation_draws_weights_of_its_own(judge):
    published = []
    for seed in (1, 2):
        judge.load(MODULE, "module")
        judge.map()
        judge.plan(dict(seeded().state_dict()), seed)
        judge.ask("apply_weights", sides=["candidate"])
        published.append(judge.published())
        judge.ask("forget", sides=["candidate"], draws=[])

    assert not torch.equal(published[0]["gain"], published[1]["gain"])


def test_a_function_problem_has_no_weights(judge):
    judge.load()
    judge.map()

    assert {"need": [], "count": 0} == judge.plan({})
    assert {"lacking": [], "bytes": 0} == judge.ask("apply_weights", sides=["candidate"])
    assert {} == judge.ask("reset_weights")


def test_growing_arenas_keeps_what_is_known_of_weights(judge):
    judge.load(MODULE, "module")
    judge.map()
    judge.plan(dict(seeded().state_dict()))
    judge.map()

    assert [] == judge.ask("apply_weights", sides=["candidate"])["lacking"]


def test_what_is_forgotten_is_gone_and_descriptors_are_closed(judge):
    judge.load()
    before = len(os.listdir("/proc/self/fd"))
    judge.map()
    judge.draw()
    judge.ask("forget", sides=["candidate"], draws=["d", "never"])
    # A map keeps a descriptor of its own until it is collected; received ones are closed.
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    judge.map()
    judge.draw()

    assert mmap.PAGESIZE <= len(judge.arenas.inputs)


def test_it_ends_when_the_supervisor_is_gone(judge):
    judge.role.channel.close()

    assert not judge.role.alive()
