"""A real judge over a socket pair, and the hands of a contestant that writes what it likes.

`python -m benchmarks --only sabotage` plants bugs in the judge and demands that these find them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.roles import Arenas, Role
from tilewright.contestant.tensors import align, build, dtype_name
from tilewright.evaluator.judge import main as judge
from tilewright.evaluator.judge.comparison import Expected, compare, expect

EPS = torch.finfo(torch.float32).eps
TWO_OUTPUTS = """import torch

CASES = [{"name": "one", "n": 64}]


def inputs(case, generator):
    x = torch.randn(case["n"], 4, generator=generator)
    return (x, torch.randn(4, generator=generator))


def reference(x, w):
    return x * w, x.sum(-1)
"""
MODULE = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(8, 4)]


def get_init_inputs():
    return []
"""


class Bench:
    """A judge with one problem and one side."""

    def __init__(self, source: str, **fields: Any) -> None:
        self.role = Role(judge.main)
        self.arenas = Arenas()
        plain = {"problem_kind": "function", "mode": "train", "grads": [], "donates": []}
        plain |= {"init_seed": 1, "threads": 1, "tolerance": None}
        self.ask("problem", body=source.encode(), **{**plain, **fields})
        for side in ("candidate", "eager"):
            self.ask("map", fds=self.arenas.fds, side=side, **self.arenas.fields)

    def ask(self, kind: str, body: bytes = b"", fds: Any = (), **fields: Any) -> dict[str, Any]:
        frame = self.role.ask(kind, fields, body, fds)
        assert frame.kind == "answer", frame.fields
        return frame.fields

    def draw(self, name: str = "d", contents: str = "nominal", seed: int = 7) -> list[Any]:
        """Draw, publish at 0, and return the inputs as the contestant sees them."""
        fields = {"params": {"n": 64}, "contents": contents, "seed": seed, "forward_seed": 3}
        drawn = self.ask("draw", draw=name, **fields)
        self.drawn = drawn
        return self.publish(name)

    def publish(self, name: str = "d", stir: int | None = None) -> list[Any]:
        self.ask("publish", draw=name, side="candidate", base=0, stir=stir)
        return build(self.drawn["tree"], self.arenas.inputs, 0)

    def put(self, *values: torch.Tensor) -> list[dict[str, Any]]:
        """Write outputs into the slot and return what a contestant says of them."""
        offset, said = 0, []
        for value in values:
            offset = align(offset)
            flat = torch.frombuffer(
                self.arenas.outputs, dtype=value.dtype, count=value.numel(), offset=offset
            )
            flat.copy_(value.reshape(-1))
            said.append(
                {"type": "tensor", "dtype": dtype_name(value.dtype), "shape": list(value.shape)}
                | {"device": "cpu", "layout": "strided", "offset": offset, "structure": "1"}
            )
            offset += value.numel() * value.element_size()
        return said

    def check(self, *values: torch.Tensor, name: str = "d") -> dict[str, Any]:
        return self.ask("check", draw=name, side="candidate", base=0, outputs=self.put(*values))

    def timed(self, side: str, *values: torch.Tensor, **changes: Any) -> dict[str, Any]:
        self.put(*values)
        plain = {"base": 0, "keep": True, "expect": False, "compare": False, "next": None}
        return self.ask("timed", draw="d", side=side, **{**plain, **changes})

    def compare(self) -> str:
        """Have the snapshots compared, whatever lies in the slot by now."""
        return self.timed("candidate", keep=False, compare=True)["wrong"]

    def close(self) -> None:
        self.role.close()
        self.arenas.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(TWO_OUTPUTS)
    yield made
    made.close()


def test_the_published_constants_are_what_is_applied():
    exact = Expected(torch.ones(1), torch.ones(1).double(), 0.0)
    rough = Expected(torch.ones(1), torch.ones(1).double(), 1e-3)

    assert not compare(exact, torch.tensor([1 + 16 * EPS])).kind
    assert compare(exact, torch.tensor([1 + 17 * EPS])).kind
    assert not compare(rough, torch.tensor([1 + 7.9e-3])).kind
    assert compare(rough, torch.tensor([1 + 8.1e-3])).kind


def test_the_own_error_is_neither_the_usual_nor_the_largest():
    oracle = torch.zeros(10000, dtype=torch.float64)
    value = torch.full((10000,), 1.0)
    value[:9] = 1000.0
    value[9:20] = 10.0

    assert expect(value, oracle).own_error == 10.0


def test_a_right_answer_is_right_and_each_output_alone_can_be_wrong(bench):
    x, w = bench.draw()

    assert not bench.check(x * w, x.sum(-1))["wrong"]
    assert bench.check(x * w + 1, x.sum(-1))["wrong"] == "values"
    assert bench.check(x * w, x.sum(-1) + 1)["wrong"] == "values"
    assert bench.check(x * w, torch.zeros(64))["wrong"] == "values"


def test_outputs_of_another_shape_dtype_or_number_are_wrong(bench):
    x, w = bench.draw()

    assert bench.check((x * w).reshape(4, 64), x.sum(-1))["wrong"] == "shape"
    assert bench.check(x * w, x.sum(-1).to(torch.float32).half())["wrong"] == "dtype"
    assert bench.check(x * w)["wrong"] == "count"


def test_a_draw_is_compared_with_what_is_expected_of_it(bench):
    x, w = (value.clone() for value in bench.draw("first", seed=1))
    old = (x * w, x.sum(-1))
    assert not bench.check(*old, name="first")["wrong"]
    x, w = bench.draw("second", seed=2)

    assert bench.check(*old, name="second")["wrong"] == "values"
    assert not bench.check(x * w, x.sum(-1), name="second")["wrong"]


def test_what_is_written_after_the_snapshot_does_not_count(bench):
    x, w = bench.draw()
    right = (x * w, x.sum(-1))
    bench.timed("eager", *right)
    bench.timed("candidate", *(torch.zeros_like(value) for value in right))
    bench.put(*right)

    assert bench.compare() == "values"


def test_the_last_output_of_a_timed_call_is_compared_too(bench):
    x, w = bench.draw()
    bench.timed("candidate", x * w, torch.zeros(64), expect=True)

    assert bench.compare() == "values"


def test_stirred_inputs_are_others_and_so_is_what_is_expected(bench):
    x, w = (value.clone() for value in bench.draw())
    stirred, _ = bench.publish(stir=5)

    assert not torch.equal(x, stirred)
    bench.timed("candidate", x * w, x.sum(-1), expect=True)
    assert bench.compare() == "values"
    stirred, w = bench.publish()
    bench.timed("candidate", stirred * w, stirred.sum(-1), expect=True)
    assert not bench.compare()


def test_an_input_that_was_overwritten_is_named(bench):
    x, w = bench.draw()
    right = (x * w, x.sum(-1))
    w[3] += 1

    assert bench.check(*right)["mutated"] == ["input 1"]
    assert bench.timed("candidate", *right)["mutated"] == ["input 1"]
    bench.publish()
    assert bench.timed("candidate", *right)["mutated"] == []


def test_the_bytes_around_the_inputs_are_watched(bench):
    x, w = bench.draw()
    stop = bench.drawn["tree"]["v"][0]["offset"] + x.numel() * 4
    bench.arenas.inputs[stop + 8] ^= 0xFF

    assert bench.check(x * w, x.sum(-1))["mutated"] == ["memory around the inputs"]


def test_the_bytes_around_the_inputs_are_no_zeros(bench):
    bench.draw()

    assert bench.arenas.inputs[0] != 0


@pytest.mark.parametrize(
    ("contents", "becomes"), [("scale", lambda x: x * 64), ("sign", lambda x: -x)]
)
def test_contents_are_applied(bench, contents, becomes):
    plain = bench.draw("plain")[0].clone()
    varied = bench.draw("varied", contents)[0]

    assert torch.equal(becomes(plain), varied)
    assert not bench.drawn["skipped"]


def test_seeds_decide_what_is_drawn(bench):
    first = bench.draw("a", seed=1)[0].clone()
    second = bench.draw("b", seed=2)[0].clone()
    again = bench.draw("c", seed=1)[0]

    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_the_oracle_is_float64():
    source = TWO_OUTPUTS.replace("x * w, x.sum(-1)", "(x + 1e6) - 1e6, x.sum(-1)")
    bench = Bench(source)
    try:
        x, _ = bench.draw()
        assert bench.drawn["oracle"] == "float64"
        assert not bench.check(x.clone(), x.sum(-1))["wrong"]
    finally:
        bench.close()


def test_a_reference_that_draws_random_numbers_is_known():
    source = TWO_OUTPUTS.replace("x * w", "x * w * torch.rand_like(x)")
    bench = Bench(source)
    try:
        bench.draw()
        assert bench.drawn["random"]
    finally:
        bench.close()


def test_the_published_rule_takes_the_place_of_ours():
    bench = Bench(TWO_OUTPUTS, tolerance=1e-2)
    try:
        x, w = bench.draw()
        assert not bench.check(x * w + 5e-3, x.sum(-1))["wrong"]
        assert bench.check(x * w + 1, x.sum(-1))["wrong"] == "values"
        nan = (x * w).clone()
        nan[0, 0] = math.nan
        assert bench.check(nan, x.sum(-1))["wrong"] == "values"
    finally:
        bench.close()


def test_weights_are_drawn_anew_and_loaded_on_both_sides():
    bench = Bench(MODULE, problem_kind="module")
    try:
        torch.manual_seed(1)
        seeded = torch.nn.Linear(4, 4).state_dict()
        entries = b'[["linear.weight",[4,4],"float32"],["linear.bias",[4],"float32"]]'
        bench.ask("plan_weights", body=entries, side="candidate", seed=5)
        assert bench.ask("apply_weights", sides=["candidate"])["lacking"] == []
        tree = bench.ask("publish_weights", side="candidate")["tree"]
        state = {k: v.clone() for k, v in build(tree, bench.arenas.inputs, 0).items()}
        (x,) = bench.draw()

        assert not torch.equal(seeded["weight"], state["linear.weight"])
        with torch.no_grad():
            old = torch.nn.functional.linear(x, seeded["weight"], seeded["bias"])
            new = torch.nn.functional.linear(x, state["linear.weight"], state["linear.bias"])
        assert bench.check(old)["wrong"] == "values"
        assert not bench.check(new)["wrong"]
    finally:
        bench.close()
