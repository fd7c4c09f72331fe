"""Input samples: private masters, expected outputs, and overwritten inputs."""

from __future__ import annotations

import math
import mmap
import subprocess
import sys
from typing import Any

import pytest
import torch

from tilewright.evaluator.judge import comparison, inputs
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.inputs import InputSample, described_outputs
from tilewright.evaluator.judge.reference import ProblemFailure
from tilewright.evaluator.judge.wider_tolerance import widen_tolerance

pytestmark = pytest.mark.usefixtures("problem_module")

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


def sampled(
    reference: refs.Reference, variation: str = "nominal", seed: int = 3, double: bool = True
) -> InputSample:
    return inputs.make_sample(reference, {"n": 4}, variation, seed, 11, double=double)


def arena(sample: InputSample, base: int = 0) -> mmap.mmap:
    """Return an input arena that holds the draw at `base`."""
    there = mmap.mmap(-1, base + len(sample.image))
    there[base : base + sample.size] = sample.image[: sample.size]
    return there


def test_the_seed_decides_the_inputs_and_what_is_expected():
    reference = load(RAND, "x.exp()")
    first, again, other = sampled(reference), sampled(reference), sampled(reference, seed=4)

    assert first.image[:] == again.image[:]
    assert first.image[:] != other.image[:]
    (x,) = first.arguments()
    assert torch.equal(x.exp(), first.expected[0].value)
    assert torch.equal(x.double().exp(), first.expected[0].oracle)
    assert first.oracle == "float64"
    assert 0 < first.expected[0].reference_error < 1e-5
    assert not first.random


def test_infinite_elements_that_nominal_inputs_have_too_skip_no_variation():
    hidden = "torch.arange(8) > 5"
    reference = load(RAND, f"(x * 2).masked_fill({hidden}, float('-inf'))")
    assert not sampled(reference).skipped
    assert not sampled(reference, "scale").skipped

    for n in range(inputs.MAX_KNOWN_CASES + 1):
        if n == inputs.MAX_KNOWN_CASES - 1:
            assert not sampled(reference).skipped
        inputs.make_sample(reference, {"n": n + 5}, "nominal", 1, 1, double=False)
    assert len(reference.infinite) == inputs.MAX_KNOWN_CASES
    assert not sampled(reference, "scale").skipped, "a case that is used is kept"

    mixed = load(RAND, f"x.exp().masked_fill({hidden}, float('-inf'))")
    assert not sampled(mixed).skipped
    assert "not finite" in sampled(mixed, "scale").skipped


@pytest.mark.parametrize("double", [False, True])
def test_no_input_is_rounded_out_of_the_domain_of_the_reference(double):
    target = "(torch.rand(case['n'], 8, generator=generator) > 0.5).float()"
    reference = load(
        f"(torch.rand(case['n'], 8, generator=generator), {target})",
        "torch.nn.functional.binary_cross_entropy(x, y)",
        "x, y",
    )
    sample = sampled(reference, double=double)
    assert sample.expected[0].reference_error >= 0
    assert widen_tolerance(reference, sample) is double


def test_without_a_float64_run_the_reference_error_comes_from_rounded_inputs():
    sample = sampled(load(RAND, "x.exp()"), double=False)

    assert sample.oracle == "float32"
    assert sample.expected[0].oracle is None
    assert 0 < sample.expected[0].reference_error < 1e-4


def test_a_reference_that_cannot_run_in_float64_uses_float32():
    sample = sampled(load(RAND, "x @ torch.tensor(torch.ones(8, 8).numpy().astype('float32'))"))

    assert sample.oracle == "float32"
    assert sample.expected[0].reference_error > 0


def test_a_reference_that_names_float32_runs_in_float64():
    sample = sampled(load(RAND, "(x @ torch.ones(8, 8, dtype=torch.float32)).exp()"))
    (x,) = sample.arguments()

    assert sample.oracle == "float64"
    assert torch.equal((x.double() @ torch.ones(8, 8).double()).exp(), sample.expected[0].oracle)


def test_a_float64_result_of_another_shape_is_not_used():
    sample = sampled(load(RAND, "x[: 2 if x.dtype == torch.float64 else 3]"))

    assert sample.oracle == "float32"


def test_integers_have_no_error_in_the_fallback():
    sample = sampled(load(RAND, "(x.argmax(-1), x.sum())"), double=False)

    assert [sample.expected[0].reference_error, sample.expected[1].reference_error == 0.0] == [
        0.0,
        False,
    ]


def test_a_reference_that_draws_random_numbers_is_found():
    reference = load(RAND, "torch.nn.functional.dropout(x, 0.5)")
    sample = sampled(reference)

    assert (sample.random, reference.stateful) == (True, False)
    assert sample.oracle == "float32"
    assert [item.reference_error for item in sample.expected] == [0.0]


@pytest.mark.parametrize("variation", ["x[0, :1]", "x[0, :2]"])
def test_a_random_reference_is_found_where_two_seeds_happen_to_agree(variation):
    # Two draws of one element agree in every second case, later ones too.
    for seed in range(20):
        reference = load(RAND, f"torch.nn.functional.dropout({variation}, 0.5)")
        made = [
            inputs.make_sample(reference, {"n": 4}, "nominal", 3, seed + other, double=False)
            for other in range(6)
        ]
        assert [sample.random for sample in made] == [True] * 6


def test_random_numbers_without_effect_do_not_make_a_reference_random():
    reference = load(RAND, "x + 0 * torch.rand(())")
    assert not sampled(reference).random
    assert not sampled(reference, seed=4).random


def test_a_reference_whose_state_has_settled_is_judged_again():
    # It counts to three, and says the same from then on: a wrong candidate is wrong then.
    reference = load(RAND, "x + min(len(KEPT.append(0) or KEPT), 3)")
    reference.module.KEPT = []
    seen = []
    for _ in range(3):
        sample = sampled(reference)
        seen.append((sample.random, reference.stateful))

    assert seen[0] == (True, True)
    assert seen[-1] == (False, False)


@pytest.mark.parametrize(
    "reference", ["(x > 0, x)", "x[:0]", "x / 0.0", "x.log()", "x + 1e-9 * torch.rand(1)"]
)
def test_integers_nan_infinity_and_rounding_are_not_random(reference):
    assert not sampled(load(RAND, reference)).random


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
    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", at_once)
    one = torch.tensor([1.0, math.nan, 1e4, math.inf, -1e4])
    assert inputs.nearly_equal(one, torch.tensor(other)) is alike


PEAK = """
import resource, torch
from tilewright.evaluator.judge import comparison, inputs as samples, reference as refs
from tilewright.evaluator.judge import wider_tolerance
SIZE, comparison.CHUNK_ELEMENTS = 16 << 20, 1 << 20
source = "import torch\\ndef inputs(case, generator):\\n    return torch.randn(16, 8)"
source += "\\ndef reference(x):\\n    return x.sum() * torch.ones(1 << 14, 1 << 10, dtype=x.dtype)"
fields = dict(problem_kind="function", mode="eval", grads=[], keywords=[], init_seed=5)
reference = refs.load(source, fields)
torch.ones(SIZE)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
drawn = samples.make_sample(reference, {}, "nominal", 3, 11, double=True)
one = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
assert wider_tolerance.widen_tolerance(reference, drawn)
both = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(one / (4 * SIZE), both / (4 * SIZE))
"""


def test_an_input_sample_needs_few_times_the_memory_of_its_outputs():
    # In a process of its own, whose peak is of nothing else; 12 and 15 times once filled a GPU.
    ran = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    one, both = map(float, ran.stdout.split())
    assert one < 6
    assert both < 11


def test_a_random_choice_of_integers_is_random():
    assert sampled(load(RAND, "torch.randperm(100)")).random


def test_gradients_of_outputs_are_drawn_and_shared():
    reference = load(f"({RAND}, {RAND})", "(x * y, x.argmax())", "x, y", grads=["y"])
    sample = sampled(reference)
    (upstream,) = sample.grad_outputs()
    x, _ = sample.arguments()

    assert len(sample.expected) == 3
    assert torch.equal(x * upstream, sample.expected[2].value)


def test_a_variation_has_the_expected_outputs_of_its_varied_inputs():
    reference = load(RAND, "x * 2")
    nominal, scaled = sampled(reference), sampled(reference, "scale")

    assert torch.equal(64 * nominal.arguments()[0], scaled.arguments()[0])
    assert torch.equal(64 * nominal.expected[0].value, scaled.expected[0].value)
    assert scaled.skipped == ""


def test_a_variation_without_effect_is_skipped():
    sample = sampled(load("torch.arange(5)", "x + 1"), "scale")

    assert sample.skipped == "no input may vary this way"


@pytest.mark.parametrize(
    ("reference", "variation", "reason"),
    [("x.exp()", "scale", "not finite"), ("(x + 1e8) - 1e8", "sign", "inaccurate")],
)
def test_a_variation_that_the_reference_cannot_judge_is_skipped(reference, variation, reason):
    assert reason in sampled(load(RAND, reference), variation).skipped
    assert sampled(load(RAND, reference)).skipped == ""


def test_integer_outputs_never_make_a_variation_unsound():
    assert sampled(load(RAND, "x.argmax(-1)"), "sign").skipped == ""
    assert sampled(load(RAND, "x[:0]"), "sign").skipped == ""


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("[object()]", "laying out the inputs: LayoutError"),
        ("torch.eye(3).to_sparse()", "laying out the inputs: LayoutError"),
        ("1 / 0", "generating inputs: ZeroDivisionError"),
    ],
)
def test_inputs_that_cannot_be_shared_are_a_problem_failure(inputs, message):
    with pytest.raises(ProblemFailure, match=message):
        sampled(load(inputs, "torch.ones(1)"))


def test_an_expanded_input_keeps_its_values():
    reference = load(f"{RAND}[:, :1].expand(4, 2)", "x + 1")
    (x,) = sampled(reference).arguments()

    assert torch.equal(x[:, 0], x[:, 1])
    varied = sampled(reference, "sign")
    assert varied.skipped == ""
    assert torch.equal(-x, varied.arguments()[0])


def test_strides_and_values_of_other_kinds_survive():
    sample = sampled(
        load(f"({RAND}.T, 3, 2.5, None, [torch.arange(2)])", "x", "x, n, f, none, items")
    )
    x, n, f, none, items = sample.arguments()

    assert x.stride() == (1, 8)
    assert (n, f, none) == (3, 2.5, None)
    assert items[0].tolist() == [0, 1]


def test_outputs_are_described_and_counted_to_the_byte():
    sample = sampled(load(RAND, "(x, x.half(), x > 0, x[:0])"))
    described, size = described_outputs(sample)

    assert [item["dtype"] for item in described] == ["float32", "float16", "bool", "float32"]
    assert [item["shape"] for item in described] == [[4, 8]] * 3 + [[0, 8]]
    assert size == 32 * (4 + 2 + 1)
    sample.forget_values()
    assert all(e.value.is_meta and e.oracle is None and not e.accepted for e in sample.expected)
    assert described_outputs(sample) == (described, size)


def test_only_outputs_with_cancellation_get_a_rounding_sensitivity():
    cancels = load(RAND, "torch.stack((x * 3, (x + 1e4) - 1e4))")
    sample = sampled(cancels)
    assert widen_tolerance(cancels, sample)
    rounding_sensitivity = sample.expected[0].rounding_sensitivity
    assert rounding_sensitivity is not None
    plain, _ = rounding_sensitivity
    size = sample.expected[0].value[0].abs().double()
    worst = float((sample.expected[0].value.double() - sample.expected[0].oracle).abs().max())
    assert bool((plain <= torch.maximum(2e-7 * size, torch.tensor(worst / 2))).all())
    assert float(rounding_sensitivity.min()) == pytest.approx(worst / 2)
    # Known now, so a second look would change nothing.
    assert not widen_tolerance(cancels, sample)


def test_without_a_float64_result_no_output_has_a_rounding_sensitivity():
    reference = load(RAND, "x * 3")
    sample = sampled(reference, double=False)
    assert not widen_tolerance(reference, sample)
    assert sample.expected[0].rounding_sensitivity is None
