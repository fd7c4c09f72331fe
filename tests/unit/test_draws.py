"""Draws: private masters, what is expected of them, and what was overwritten."""

from __future__ import annotations

import math
import mmap
import subprocess
import sys
from typing import Any

import pytest
import torch

from tilewright.contestant.tensors import GUARD_BYTES
from tilewright.evaluator.judge import draws
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.draws import Draw, described_outputs, overwritten
from tilewright.evaluator.judge.reference import ProblemFailure

pytestmark = pytest.mark.usefixtures("problem_room")

RAND = "torch.randn(case['n'], 8, generator=generator)"


def load(inputs: str, reference: str, arguments: str = "x", **changes: Any) -> refs.Reference:
    source = (
        f"import torch\ndef inputs(case, generator):\n    return {inputs}\n"
        f"def reference({arguments}):\n    return {reference}\n"
    )
    fields = {
        "problem_kind": "function",
        "mode": "train",
        "grads": [],
        "keywords": [],
        "init_seed": 5,
    }
    fields |= changes
    return refs.load(source, fields)


def draw(
    reference: refs.Reference, contents: str = "nominal", seed: int = 3, double: bool = True
) -> Draw:
    return draws.draw(reference, {"n": 4}, contents, seed, 11, double=double)


def arena(drawn: Draw, base: int = 0) -> mmap.mmap:
    """Return an input arena that holds the draw at `base`."""
    there = mmap.mmap(-1, base + len(drawn.image))
    there[base : base + drawn.size] = drawn.image[: drawn.size]
    return there


def test_the_seed_decides_the_inputs_and_what_is_expected():
    reference = load(RAND, "x.exp()")
    first, again, other = draw(reference), draw(reference), draw(reference, seed=4)

    assert first.image[:] == again.image[:]
    assert first.image[:] != other.image[:]
    (x,) = first.arguments()
    assert torch.equal(x.exp(), first.expected[0].value)
    assert torch.equal(x.double().exp(), first.expected[0].oracle)
    assert first.oracle == "float64"
    assert 0 < first.expected[0].own_error < 1e-5
    assert not first.random


def test_without_the_oracle_the_reference_is_nudged():
    drawn = draw(load(RAND, "x.exp()"), double=False)

    assert drawn.oracle == "float32"
    assert drawn.expected[0].oracle is None
    assert 0 < drawn.expected[0].own_error < 1e-4


def test_a_reference_that_cannot_run_in_float64_falls_back():
    drawn = draw(load(RAND, "x @ torch.ones(8, 8, dtype=torch.float32)"))

    assert drawn.oracle == "float32"
    assert drawn.expected[0].own_error > 0


def test_an_oracle_of_another_shape_is_no_oracle():
    drawn = draw(load(RAND, "x[: 2 if x.dtype == torch.float64 else 3]"))

    assert drawn.oracle == "float32"


def test_integers_have_no_error_in_the_fallback():
    drawn = draw(load(RAND, "(x.argmax(-1), x.sum())"), double=False)

    assert [drawn.expected[0].own_error, drawn.expected[1].own_error == 0.0] == [0.0, False]


def test_a_reference_that_draws_random_numbers_is_found():
    reference = load(RAND, "torch.nn.functional.dropout(x, 0.5)")
    drawn = draw(reference)

    assert (drawn.random, reference.stateful) == (True, False)
    assert drawn.oracle == "float32"
    assert [item.own_error for item in drawn.expected] == [0.0]


@pytest.mark.parametrize("contents", ["x[0, :1]", "x[0, :2]"])
def test_a_random_reference_is_found_where_two_seeds_happen_to_agree(contents):
    # Two draws of one element agree in every second case, later ones too.
    for seed in range(20):
        reference = load(RAND, f"torch.nn.functional.dropout({contents}, 0.5)")
        made = [
            draws.draw(reference, {"n": 4}, "nominal", 3, seed + other, double=False)
            for other in range(6)
        ]
        assert [drawn.random for drawn in made] == [True] * 6


def test_random_numbers_that_change_nothing_are_no_chance():
    reference = load(RAND, "x + 0 * torch.rand(())")
    assert not draw(reference).random
    assert not draw(reference, seed=4).random


def test_a_reference_whose_state_has_settled_is_judged_again():
    # It counts to three, and says the same from then on: a wrong candidate is wrong then.
    reference = load(RAND, "x + min(len(KEPT.append(0) or KEPT), 3)")
    reference.module.KEPT = []
    seen = []
    for _ in range(3):
        drawn = draw(reference)
        seen.append((drawn.random, reference.stateful))

    assert seen[0] == (True, True)
    assert seen[-1] == (False, False)


@pytest.mark.parametrize(
    "reference", ["(x > 0, x)", "x[:0]", "x / 0.0", "x.log()", "x + 1e-9 * torch.rand(1)"]
)
def test_integers_nan_infinity_and_rounding_are_not_random(reference):
    assert not draw(load(RAND, reference)).random


@pytest.mark.parametrize("at_once", [3, 1 << 20])
@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ([1.0, math.nan, 1e4, math.inf, -1e4], True),
        ([1.0005, math.nan, 1e4, math.inf, -1e4], True),
        ([3.0, math.nan, 1e4, math.inf, -1e4], False),
        ([1.0, math.nan, 1e4, math.inf, -1.1e4], False),
        ([1.0, 0.0, 1e4, math.inf, -1e4], False),
        ([1.0, math.nan, 1e4, math.inf], False),
    ],
)
def test_outputs_are_alike_up_to_a_share_of_the_largest(monkeypatch, at_once, other, alike):
    monkeypatch.setattr(draws, "AT_ONCE", at_once)
    one = torch.tensor([1.0, math.nan, 1e4, math.inf, -1e4])
    assert draws._equal(one, torch.tensor(other)) is alike


PEAK = """
import resource, torch
from tilewright.evaluator.judge import comparison, draws, reference as refs
SIZE, comparison.AT_ONCE = 16 << 20, 1 << 20
source = "import torch\\ndef inputs(case, generator):\\n    return torch.randn(16, 8)"
source += "\\ndef reference(x):\\n    return x.sum() * torch.ones(1 << 14, 1 << 10, dtype=x.dtype)"
fields = dict(problem_kind="function", mode="eval", grads=[], keywords=[], init_seed=5)
reference = refs.load(source, fields)
torch.ones(SIZE)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
drawn = draws.draw(reference, {}, "nominal", 3, 11, double=True)
one = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
assert draws.widen(reference, drawn)
both = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(one / (4 * SIZE), both / (4 * SIZE))
"""


def test_a_draw_needs_few_times_the_room_of_its_outputs():
    # In a process of its own, whose peak is of nothing else; 12 and 15 times once filled a GPU.
    ran = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    one, both = map(float, ran.stdout.split())
    assert one < 6
    assert both < 11


def test_a_random_choice_of_integers_is_random():
    assert draw(load(RAND, "torch.randperm(100)")).random


def test_gradients_of_outputs_are_drawn_and_shared():
    reference = load(f"({RAND}, {RAND})", "(x * y, x.argmax())", "x, y", grads=["y"])
    drawn = draw(reference)
    (upstream,) = drawn.grad_outputs()
    x, _ = drawn.arguments()

    assert len(drawn.expected) == 3
    assert torch.equal(x * upstream, drawn.expected[2].value)


def test_varied_contents_are_expected_of_the_varied_inputs():
    reference = load(RAND, "x * 2")
    nominal, scaled = draw(reference), draw(reference, "scale")

    assert torch.equal(64 * nominal.arguments()[0], scaled.arguments()[0])
    assert torch.equal(64 * nominal.expected[0].value, scaled.expected[0].value)
    assert scaled.skipped == ""


def test_contents_that_change_nothing_are_skipped():
    drawn = draw(load("torch.arange(5)", "x + 1"), "scale")

    assert drawn.skipped == "no input may vary this way"


@pytest.mark.parametrize(
    ("reference", "contents", "reason"),
    [
        ("x.exp()", "scale", "not finite"),
        ("(x + 1e8) - 1e8", "sign", "inaccurate"),
    ],
)
def test_contents_on_which_the_reference_cannot_judge_are_skipped(reference, contents, reason):
    assert reason in draw(load(RAND, reference), contents).skipped
    assert draw(load(RAND, reference)).skipped == ""


def test_integer_outputs_never_make_contents_unsound():
    assert draw(load(RAND, "x.argmax(-1)"), "sign").skipped == ""
    assert draw(load(RAND, "x[:0]"), "sign").skipped == ""


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("[object()]", "laying out the inputs: LayoutError"),
        ("torch.eye(3).to_sparse()", "laying out the inputs: LayoutError"),
        ("1 / 0", "drawing inputs: ZeroDivisionError"),
    ],
)
def test_inputs_that_cannot_be_shared_are_the_problems_fault(inputs, message):
    with pytest.raises(ProblemFailure, match=message):
        draw(load(inputs, "torch.ones(1)"))


def test_an_expanded_input_is_shared_as_the_values_it_has():
    reference = load(f"{RAND}[:, :1].expand(4, 2)", "x + 1")
    (x,) = draw(reference).arguments()

    assert torch.equal(x[:, 0], x[:, 1])
    varied = draw(reference, "sign")
    assert varied.skipped == ""
    assert torch.equal(-x, varied.arguments()[0])


def test_strides_and_values_of_other_kinds_survive():
    drawn = draw(load(f"({RAND}.T, 3, 2.5, None, [torch.arange(2)])", "x", "x, n, f, none, items"))
    x, n, f, none, items = drawn.arguments()

    assert x.stride() == (1, 8)
    assert (n, f, none) == (3, 2.5, None)
    assert items[0].tolist() == [0, 1]


def test_an_untouched_arena_shows_nothing():
    drawn = draw(load(f"({RAND}, {RAND})", "x + y", "x, y"))

    assert overwritten(drawn, arena(drawn), 0, set()) == []
    assert overwritten(drawn, arena(drawn, 8192), 8192, set()) == []


@pytest.mark.parametrize("base", [0, 8192])
def test_every_overwritten_input_is_named(base):
    drawn = draw(load(f"({RAND}, {RAND})", "x + y", "x, y"))
    first, second = (start for start, _, _ in drawn.names)
    there = arena(drawn, base)
    there[base + second] ^= 1
    assert overwritten(drawn, there, base, set()) == ["input 1"]
    there[base + first + 3] ^= 1
    assert overwritten(drawn, there, base, set()) == ["input 0", "input 1"]
    assert overwritten(drawn, there, base, {1}) == ["input 0"]
    assert overwritten(drawn, there, base, {0, 1}) == []


@pytest.mark.parametrize("distance", [-1, -GUARD_BYTES])
def test_guards_before_an_input_are_watched(distance):
    drawn = draw(load(f"({RAND}, {RAND})", "x + y", "x, y"))
    there = arena(drawn)
    there[drawn.names[0][0] + distance] ^= 1

    assert overwritten(drawn, there, 0, {0, 1}) == ["memory around the inputs"]


def test_guards_behind_an_input_are_watched():
    drawn = draw(load(f"({RAND}, {RAND})", "x + y", "x, y"))
    for _, stop, _ in drawn.names:
        there = arena(drawn)
        there[stop] ^= 1

        assert overwritten(drawn, there, 0, {0, 1}) == ["memory around the inputs"]


def test_a_view_of_a_larger_storage_has_its_own_guards():
    drawn = draw(load(f"({RAND}[:1], {RAND})", "x + y", "x, y"))
    there = arena(drawn)
    there[drawn.names[1][0]] ^= 1
    assert overwritten(drawn, there, 0, set()) == ["input 1"]

    behind = arena(drawn)
    behind[drawn.names[0][0] + 8 * 4] ^= 1
    assert overwritten(drawn, behind, 0, {0}) == ["memory around the inputs"]


def test_inputs_are_named_by_their_place_among_the_arguments():
    inputs = f"(2.0, [{RAND}, {RAND}], {RAND})"
    reference = load(inputs, "pair[0] + pair[1] + y * f", "f, pair, y", grads=["y"])
    drawn = draw(reference)

    assert [index for _, _, index in drawn.names][:3] == [1, 1, 2]
    there = arena(drawn)
    there[drawn.names[2][0]] ^= 1
    assert overwritten(drawn, there, 0, {1}) == ["input 2"]
    assert overwritten(drawn, there, 0, {2}) == []
    upstream = arena(drawn)
    upstream[drawn.names[3][0]] ^= 1
    assert overwritten(drawn, upstream, 0, {0, 1, 2}) == ["input 3"]


def test_stirring_moves_plain_inputs_and_nothing_else():
    drawn = draw(load(f"({RAND}, torch.eye(12), torch.arange(9), {RAND}.T)", "x", "x, e, i, t"))
    before = [value.clone() for value in drawn.arguments()]
    drawn.stir(77)
    x, eye, integers, transposed = drawn.arguments()

    assert not torch.equal(before[0], x)
    assert torch.equal(before[0].reshape(-1).sort().values, x.reshape(-1).sort().values)
    assert torch.equal(before[1], eye)
    assert torch.equal(before[2], integers)
    assert torch.equal(before[3], transposed)
    assert len(drawn.movable) == 1


def test_inputs_that_may_not_be_shuffled_are_drawn_anew():
    triangle = "torch.randn(case['n'], case['n'], generator=generator).tril()"
    drawn = draw(load(triangle, "x * 2"))
    assert drawn.movable == []
    seen = {drawn.image[:]}
    for seed in (5, 6):
        drawn.stir(seed)
        assert drawn.image[:] not in seen
        seen.add(drawn.image[:])
        (x,) = drawn.arguments()
        assert torch.equal(x, x.tril())
    again = draw(load(triangle, "x * 2"))
    again.stir(6)
    assert again.image[:] == drawn.image[:]


def test_inputs_whose_size_is_drawn_stay_as_they_are():
    size = "int(torch.randint(2, 900, (), generator=generator))"
    drawn = draw(load(f"torch.ones({size})", "x * 2"))
    before = drawn.image[:]
    drawn.stir(5)
    assert drawn.image[:] == before


def test_outputs_are_described_and_counted_to_the_byte():
    drawn = draw(load(RAND, "(x, x.half(), x > 0, x[:0])"))
    described, size = described_outputs(drawn)

    assert [item["dtype"] for item in described] == ["float32", "float16", "bool", "float32"]
    assert [item["shape"] for item in described] == [[4, 8]] * 3 + [[0, 8]]
    assert size == 32 * (4 + 2 + 1)
    drawn.forget_values()
    assert all(e.value.is_meta and e.oracle is None and e.certain is None for e in drawn.expected)
    assert described_outputs(drawn) == (described, size)


def test_outputs_that_cancel_sway_and_others_do_not():
    cancels = load(RAND, "torch.stack((x * 3, (x + 1e4) - 1e4))")
    drawn = draw(cancels)
    assert draws.widen(cancels, drawn)
    sway = drawn.expected[0].sway
    assert sway is not None
    plain, _ = sway
    size = drawn.expected[0].value[0].abs().double()
    worst = float((drawn.expected[0].value.double() - drawn.expected[0].oracle).abs().max())
    assert bool((plain <= torch.maximum(2e-7 * size, torch.tensor(worst / 2))).all())
    assert float(sway.min()) == pytest.approx(worst / 2)
    # Known now, so a second look would change nothing.
    assert not draws.widen(cancels, drawn)


def test_without_an_oracle_nothing_sways():
    reference = load(RAND, "x * 3")
    drawn = draw(reference, double=False)
    assert not draws.widen(reference, drawn)
    assert drawn.expected[0].sway is None
