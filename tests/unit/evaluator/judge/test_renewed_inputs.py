"""Inputs of timed calls: each call gets new values of the problem's generator.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.unit.evaluator.judge.test_inputs import RAND, load, sampled
from tilewright.evaluator.judge import renewed_inputs, variations
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.reference import ProblemFailure, Reference
from tilewright.wire.names import PEAKED

pytestmark = pytest.mark.usefixtures("problem_module")
KINDS = {
    "plain": RAND,
    "triangle": "torch.randn(case['n'], case['n'], generator=generator).tril()",
    "integers": "torch.randint(0, 1 << 40, (case['n'], 8), generator=generator)",
    "mask": "torch.rand(40, 40, generator=generator) > 0.5",
    "sorted": f"{RAND}.sort(-1).values",
    "stochastic": f"torch.softmax({RAND}, -1)",
    "strided": f"{RAND}.T",
    "expanded": f"{RAND}[:, :1].expand(4, 2)",
    "global generator": "torch.randn(case['n'], 8)",
    "in a list": f"[{RAND}]",
}


def renew(
    reference: Reference,
    sample: InputSample,
    seed: int,
    variation: str = "nominal",
    varied: bool | None = None,
) -> bool:
    chosen = variation != "nominal" if varied is None else varied
    return renewed_inputs.renew(reference, sample, seed, seed + 1, variation, varied=chosen)


def leaves(sample: InputSample) -> list[torch.Tensor]:
    found: list[Any] = []
    for value in sample.arguments():
        found += value if isinstance(value, list) else [value]
    return [value.clone() for value in found if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_every_kind_and_layout_get_new_values(kind):
    reference = load(f"({KINDS[kind]},)", "1 * x if isinstance(x, torch.Tensor) else x[0] * 1")
    sample = sampled(reference)
    seen = {sample.image[:]}
    for seed in range(5, 10):
        assert renew(reference, sample, seed)
        assert sample.image[:] not in seen
        seen.add(sample.image[:])
        again = sampled(reference, seed=seed)
        # Values, layout and the space between are those of a new sample under that seed.
        assert again.image[: again.size] == sample.image[: sample.size]
        assert again.tree == sample.tree


def test_a_fixed_slice_that_is_not_dense_is_moved_in_its_layout():
    fixed = "torch.linspace(0, 1, 64).reshape(8, 8)[:, :4]"
    reference = load(f"({fixed}, {RAND})", "x.sum()", "x, y")
    sample = sampled(reference)
    tree, before = sample.tree, sample.image[:]
    assert tree["v"][0]["stride"] == [8, 1]
    assert renew(reference, sample, 5)
    assert sample.tree == tree
    assert sample.image[:] != before


def test_the_same_seed_gives_the_same_values():
    reference = load(RAND, "x * 2")
    first, second = sampled(reference, seed=1), sampled(reference, seed=2)
    renew(reference, first, 9)
    renew(reference, second, 9)

    assert first.image[:] == second.image[:]
    assert first.forward_seed == second.forward_seed == 10


def test_a_scalar_argument_may_change():
    reference = load(f"({RAND}, float(torch.rand((), generator=generator)))", "x * f", "x, f")
    sample = sampled(reference)
    before = sample.arguments()[1]
    assert renew(reference, sample, 8)

    after = sample.arguments()[1]
    assert after != before
    assert after == sampled(reference, seed=8).arguments()[1]


@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "complex64"])
def test_repeated_values_move_by_up_to_an_eighth_within_their_range(kind):
    draw = "torch.randn(64, 32, generator=torch.Generator().manual_seed(3)"
    made = f"{draw}, dtype=torch.{kind})"
    reference = load(f"({made}, torch.arange(5), {RAND})", "x * 2", "x, n, y")
    sample = sampled(reference)
    first, numbers, _ = leaves(sample)
    seen = []
    for seed in (8, 9):
        assert renew(reference, sample, seed)
        moved, same, drawn = leaves(sample)
        assert torch.equal(same, numbers)
        assert torch.equal(drawn, leaves(sampled(reference, seed=seed))[2])
        some = first != 0
        ratio = (
            torch.view_as_real(moved / first)[..., 0]
            if first.is_complex()
            else (moved / first)[some]
        )
        assert float((moved != first).double().mean()) > 0.9
        if not first.is_complex():
            assert 0.87 < float(ratio.min()) < float(ratio.max()) < 1.13
            assert float(moved.max()) <= float(first.max())
        seen.append(moved)
    assert not torch.equal(*seen)


@pytest.mark.parametrize(
    ("made", "moves"),
    [
        ("torch.arange(30.0)", True),
        ("torch.diag(torch.full((29,), 0.5), 1)", True),
        ("torch.tril(torch.ones(30, 30))", False),
        ("torch.full((30, 4), 0.25)", False),
        ("torch.zeros(30).masked_fill(torch.arange(30) > 9, float('-inf'))", False),
    ],
)
def test_repeated_values_with_a_structure_get_a_common_factor_unless_they_are_a_mask(made, moves):
    reference = load(f"({made}, {RAND})", "y.sum() + x.nan_to_num(0, 0, 0).sum()", "x, y")
    sample = sampled(reference)
    first, _ = leaves(sample)
    factors = set()
    for seed in (8, 9):
        assert renew(reference, sample, seed)
        moved, _ = leaves(sample)
        ratio = (moved / first)[(first != 0) & first.isfinite()]
        factors |= {round(float(value), 5) for value in ratio}
        assert torch.equal(moved == 0, first == 0)
    assert (
        (len(factors) == 2 and 0.875 <= min(factors) < max(factors) < 1)
        if moves
        else (factors <= {1.0})
    )


@pytest.mark.parametrize("varied", [True, False])
def test_values_that_count_are_those_of_the_base(varied):
    reference = load(RAND, "x * 2")
    sample = sampled(reference)
    chosen = {"variation": "sign", "varied": varied, "base": "uneven_parts"}
    assert renewed_inputs.renew(reference, sample, 8, 9, **chosen)

    (values,), (drawn,) = leaves(sample), reference.arguments(sample.params, 8)
    assert torch.equal(values, -drawn) == varied
    assert sample.variation == ("sign" if varied else "uneven_parts")
    if not varied:
        assert float((values != drawn).double().mean()) > 0.9


def test_half_of_the_timed_calls_with_uneven_parts_have_a_peak():
    reference = load("torch.randn(4096)", "x * 2")
    sample = sampled(reference)
    chosen = {"variation": "sign", "varied": False, "base": PEAKED}

    def largest(seed: int) -> float:
        assert renewed_inputs.renew(reference, sample, seed, 9, **chosen)
        (values,) = leaves(sample)
        return float(values.abs().max() / values.abs().median())

    even, odd = ([largest(seed) for seed in range(first, 40, 2)] for first in (0, 1))
    assert sorted(odd)[10] > 1.5 * max(sorted(even)[10], 1.0)


@pytest.mark.parametrize("refused", [True, False])
def test_repeated_values_stay_where_the_reference_refuses_others(refused):
    body = "x * 1 if bool((x == x.round()).all()) or not REFUSED else 1 // 0"
    reference = load("torch.arange(1.0, 33.0)", body.replace("REFUSED", str(refused)))
    sample = sampled(reference)
    (before,) = leaves(sample)
    for seed in (5, 6):
        assert renew(reference, sample, seed)
        (after,) = leaves(sample)
        assert torch.equal(before, after) is refused


def test_one_value_for_every_seed_stays():
    reference = load("torch.ones(4, 8)", "x * 2")
    sample = sampled(reference)
    before = sample.image[:]

    assert renew(reference, sample, 8)
    assert sample.image[:] == before


def test_values_of_another_shape_fill_the_known_one():
    size = "int(torch.randint(2, 900, (), generator=generator))"
    reference = load(f"torch.rand({size}, generator=generator)", "x * 2")
    sample = sampled(reference)
    before, tree = sample.image[:], sample.tree
    (old,) = (value.clone() for value in sample.arguments())

    assert not renew(reference, sample, 5)
    (new,), (drawn,) = sample.arguments(), reference.arguments({}, 5)
    assert sample.tree == tree
    assert not torch.isin(new, old).any()
    assert torch.isin(new, drawn).all()
    # The first sample may come again.
    assert renew(reference, sample, 3)
    assert sample.image[:] != before


@pytest.mark.parametrize("other", ["x.double()", "(x, 1)", "[x]", "{'a': x}", "2.0"])
def test_a_generator_of_another_form_moves_the_known_values(other):
    reference = load("KINDS.pop() if KINDS else 0", "torch.ones(1)")
    x = torch.randn(4, 8)
    reference.module.KINDS = [(x,)]
    sample = sampled(reference)
    found = eval(other, {"x": x + 1})
    reference.module.KINDS = [found if isinstance(found, tuple) else (found,)]

    assert not renew(reference, sample, 5)
    (moved,) = sample.arguments()
    assert float((moved != x).double().mean()) > 0.9
    assert torch.allclose(moved, x, rtol=0.13)


def test_a_generator_that_fails_later_is_a_problem_failure():
    reference = load("(KEPT.pop(),)", "x * 2")
    reference.module.KEPT = [torch.ones(3)]
    sample = sampled(reference)

    with pytest.raises(ProblemFailure, match="IndexError"):
        renew(reference, sample, 5)


@pytest.mark.parametrize("variation", ["sign", "scale", "small_integers"])
def test_varied_values_are_those_of_a_varied_sample(variation):
    reference = load(f"({RAND}, torch.eye(12))", "x.sum() + e", "x, e")
    sample = sampled(reference)
    assert renew(reference, sample, 8, variation)
    assert sample.varied
    expected = sampled(reference, variation, seed=8)
    assert all(map(torch.equal, leaves(sample), leaves(expected)))
    assert not torch.equal(leaves(sample)[0], leaves(sampled(reference, seed=8))[0])
    # The next nominal values owe nothing to it.
    assert renew(reference, sample, 9, variation, varied=False)
    assert not sample.varied
    assert all(map(torch.equal, leaves(sample), leaves(sampled(reference, seed=9))))


@pytest.mark.parametrize("varied", [False, True])
def test_a_variation_is_computed_for_every_call(monkeypatch, varied):
    reference = load(f"({RAND}, {RAND})", "x + y", "x, y")
    sample = sampled(reference)
    computed = []

    def changed(value: torch.Tensor, variation: str, *_: object, thin: bool) -> torch.Tensor:
        del thin
        computed.append(variation)
        return -value

    monkeypatch.setattr(variations, "_changed", changed)
    renew(reference, sample, 8, "offset", varied=varied)
    assert computed == ["offset"] * 2


def test_gradients_of_outputs_are_new_too():
    reference = load(f"({RAND}, {RAND})", "x * y", "x, y", grads=["y"])
    sample = sampled(reference)
    seen = [sample.grad_outputs()[0].clone()]
    for seed in (5, 6):
        assert renew(reference, sample, seed)
        (upstream,) = sample.grad_outputs()
        assert not any(torch.equal(upstream, old) for old in seen)
        seen.append(upstream.clone())


def test_half_of_the_heavy_tails_of_timed_calls_change_a_few_elements_only():
    reference = load("(torch.rand(256, 512, generator=generator),)", "1 * x")
    sample, many = sampled(reference), 256 * 512 * variations.HEAVY_SHARE
    for seed in range(5, 11):
        assert renew(reference, sample, seed, "heavy_tail")
        changed = int((leaves(sample)[0] > 1).sum())
        if seed % 2:
            assert 0 < changed < 4 * variations.FEW_OUTLIERS
        else:
            assert 0.9 * many < changed < 1.1 * many


MASKED = f"({RAND}, torch.rand(case['n'], 8, generator=generator) > 0.5)"


@pytest.mark.parametrize("variation", ["nominal", "sign"])
def test_values_keep_the_output_shapes_that_depend_on_them(variation):
    reference = load(MASKED, "x[mask]", "x, mask")
    sample = sampled(reference)
    known, masks = sample.expected[0].value.shape, set()
    for seed in range(6):
        renew(reference, sample, seed, variation)
        x, mask = sample.arguments()
        assert reference.function(x, mask).shape == known
        masks.add(tuple(mask.reshape(-1).tolist()))
    assert len(masks) == 6
    assert reference.placement.dynamic is True


def test_an_expanded_argument_keeps_its_layout_where_shapes_depend_on_values():
    made = MASKED.replace(f"({RAND},", f"({RAND}[:, :1].expand(case['n'], 8),")
    assert made != MASKED
    reference = load(made, "x[mask]", "x, mask")
    sample = sampled(reference)
    strides = {sample.arguments()[0].stride()}
    for seed in range(6):
        renew(reference, sample, seed)
        x, mask = sample.arguments()
        strides.add(x.stride())
        assert reference.function(x, mask).shape == sample.expected[0].value.shape
    assert len(strides) == 1


def test_the_time_of_a_call_is_not_that_of_a_call_in_a_mode():
    reference = load(MASKED, "x[mask]", "x, mask")
    sample = sampled(reference)
    reference.call_s = 5.0
    renew(reference, sample, 1)
    assert reference.call_s == 5.0


def test_a_reference_of_fixed_shapes_is_seen_as_one():
    reference = load(MASKED, "torch.where(mask, x, 0)", "x, mask")
    renew(reference, sampled(reference), 1)
    assert reference.placement.dynamic is False
