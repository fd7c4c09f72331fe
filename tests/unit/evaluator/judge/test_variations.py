"""Input variations change values and keep what the values mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tilewright.evaluator.judge.variations import (
    OFFSET,
    PEAK_EXPONENT,
    SCALE,
    _peak,
    is_structured,
    vary,
)
from tilewright.wire.names import (
    HIGHEST_PEAK,
    INPUT_VARIATIONS,
    MOVED,
    PEAKED,
    allowed_variations,
)

VARIED = INPUT_VARIATIONS[1:]


def generator(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sample(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(1))


def symmetric() -> torch.Tensor:
    value = sample(16, 16)
    return value + value.T


# Made when they are asked for: this file is read by processes that must have one thread.
STRUCTURED: dict[str, Callable[[], torch.Tensor]] = {
    "triangular": lambda: sample(32, 32).tril(),
    "one-hot": lambda: torch.eye(40),
    "mask": lambda: (sample(16, 16) > 0).float(),
    "probabilities": lambda: torch.softmax(sample(8, 50), -1),
    "symmetric": symmetric,
    "few values": lambda: torch.arange(4.0).repeat(64) + 1,
    "with infinities": lambda: torch.tensor([1.0, float("-inf"), 2.0, 3.0]),
    "integers": lambda: torch.arange(12),
    "truth values": lambda: torch.tensor([True, False]),
    "empty": lambda: torch.empty(0, 4),
    "diagonal": lambda: torch.diag(sample(12)),
}
PLAIN: dict[str, Callable[[], torch.Tensor]] = {
    "normal": lambda: sample(32, 33),
    "positive": lambda: sample(8, 100).abs() + 0.1,
    "square": lambda: sample(16, 16),
    "vector": lambda: sample(64),
    "scalar": lambda: torch.tensor(2.5),
    "one element": lambda: sample(1, 1),
    "three": lambda: sample(2, 3, 4),
    "half": lambda: sample(16, 10).half(),
}


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("variation", VARIED)
def test_structured_tensors_are_never_changed(name, variation):
    value = STRUCTURED[name]()

    assert is_structured(value)
    assert vary(value, variation, generator()) is value


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("variation", VARIED)
def test_plain_tensors_keep_shape_dtype_and_strides(name, variation):
    value = PLAIN[name]()
    changed = vary(value, variation, generator())
    if value.dtype == torch.float16 and variation.endswith("_half_range"):
        assert changed is value
        return

    assert not is_structured(value)
    assert changed is not value
    assert (value.shape, value.dtype, value.stride()) == (
        changed.shape,
        changed.dtype,
        changed.stride(),
    )
    assert bool(torch.isfinite(changed).all())


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_a_uniform_sample_of_a_short_type_is_no_few_values(kind):
    assert not is_structured((torch.rand(64, 512, generator=generator()) + 2).to(kind))
    assert is_structured(torch.randint(0, 9, (64, 512), generator=generator()).to(kind) + 1)


def test_a_peak_of_any_length_holds_half_of_the_squares():
    lengths = set()
    for seed in range(40):
        factors = _peak(torch.Size([1, 4096]), generator(seed), highest=False).reshape(-1)
        inside = factors > 1
        length = int(inside.sum())
        if length:
            lengths.add(length.bit_length())
            assert int(inside.nonzero()[-1] - inside.nonzero()[0]) == length - 1
            assert float(factors[inside].square().sum()) == pytest.approx(4096, rel=1e-3)
    assert len(lengths) > 6


def test_only_thin_peaked_parts_have_a_peak():
    value = torch.rand(4, 65536, generator=generator()) + 1
    plain = vary(value, "uneven_parts", generator(5))
    assert torch.equal(vary(value, "uneven_parts", generator(5), thin=True), plain)
    assert torch.equal(vary(value, PEAKED, generator(5)), plain)
    for name in (PEAKED, HIGHEST_PEAK):
        ratio = (vary(value, name, generator(5), thin=True) / plain).reshape(-1)
        assert float(ratio.min()) == pytest.approx(1.0)
        assert 1.5 < float(ratio.max()) <= 2**PEAK_EXPONENT * 1.001
    assert float(ratio.max()) == pytest.approx(2**PEAK_EXPONENT)
    assert torch.equal(vary(value[:0], PEAKED, generator(), thin=True), value[:0])


def test_uneven_parts_differ_in_mean_and_scale_and_stay_positive():
    value = sample(64, 512).abs() + 0.1
    rows = vary(value, "uneven_parts", generator()).reshape(64, 16, 32)
    means = rows.mean((0, 2))

    assert float(means.max() / means.min()) > 1.5
    assert bool((rows > 0).all())
    assert not torch.equal(rows, vary(value, "uneven_parts", generator(8)).reshape(64, 16, 32))


def test_weaker_uneven_parts_stay_in_the_range_of_the_values():
    value = torch.rand(64, 64, generator=generator())
    changed = vary(value, "uneven_parts/2", generator())

    assert float(changed.min()) >= float(value.min())
    assert float(changed.max()) <= float(value.max())
    assert torch.equal(vary(value, "scale/4", generator()), value * 16)


def test_nominal_is_the_value_itself():
    value = PLAIN["normal"]()

    assert vary(value, "nominal", generator()) is value


def test_each_variation_does_what_it_says():
    value = sample(200, 100)

    assert torch.equal(value * SCALE, vary(value, "scale", generator()))
    assert torch.equal(-value, vary(value, "sign", generator()))
    assert torch.equal(value + OFFSET, vary(value, "offset", generator()))
    heavy = vary(value, "heavy_tail", generator())
    assert 0.005 < float((heavy == value * 100).double().mean()) < 0.02
    integers = vary(value, "small_integers", generator())
    assert set(range(-4, 5)) == set(integers.unique().tolist())
    edges = vary(value, "edge_values", generator())
    assert 0.03 < float((edges != value).double().mean()) < 0.07
    assert {1e4, -1e4, 0.0, 1.0} <= set(edges.unique().tolist())


@pytest.mark.parametrize("variation", VARIED)
def test_the_same_seed_gives_the_same_variation(variation):
    value = PLAIN["normal"]()

    assert torch.equal(vary(value, variation, generator()), vary(value, variation, generator()))


def test_strides_survive():
    value = sample(6, 4).T
    changed = vary(value, "sign", generator())

    assert value.stride() == changed.stride()
    assert torch.equal(-value, changed)


def test_an_unknown_variation_is_refused():
    with pytest.raises(ValueError, match="unknown input variation 'loud'; known: nominal"):
        vary(PLAIN["normal"](), "loud", generator())


def test_what_is_known_of_a_tensors_structure_is_not_looked_for_again():
    plain, structured = PLAIN["normal"](), STRUCTURED["triangular"]()

    assert vary(plain, "sign", generator(), structured=True) is plain
    assert torch.equal(-structured, vary(structured, "sign", generator(), structured=False))


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(5, 20).sort(-1).values,
        torch.linspace(0, 1, 50),
        torch.randn(7, 6, 6) + torch.randn(7, 6, 6).mT,
    ],
)
def test_sorted_and_symmetric_tensors_are_structured(value):
    if value.dim() == 3:
        value = value + value.mT
    assert is_structured(value)


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (torch.tensor([1.0, 2.5, -3.0]), True),
        (torch.tensor([[2.0, 1.0], [1.0, 3.0]]), True),
        (torch.tensor([1, 2, 3]), False),
        (torch.tril(torch.ones(3, 3)), False),
        (torch.tensor([0.25, 0.75]), False),
        (torch.tensor([[1.0, -2.0], [0.5, 4.0]], dtype=torch.bfloat16), True),
    ],
)
def test_a_moved_tensor_has_other_values_in_the_same_range(value, changes):
    made = vary(value, MOVED, torch.Generator().manual_seed(1))
    assert (made.dtype, made.shape, made.stride()) == (value.dtype, value.shape, value.stride())
    assert torch.equal(made, value) is not changes
    if value.dim() == 2 and torch.equal(value, value.T):
        # A structured tensor gets a common factor.
        assert torch.equal(made, made.T)
        assert bool(((made / value).nan_to_num(1.0) >= 0.875).all())
        return
    assert value.min() <= made.min()
    assert made.max() <= value.max()


def test_a_value_that_is_no_tensor_is_not_moved():
    assert vary(3, MOVED, torch.Generator()) == 3  # type: ignore[arg-type,comparison-overlap]


def test_only_a_problem_that_names_moved_values_has_them():
    assert allowed_variations(None) == list(INPUT_VARIATIONS[1:])
    assert allowed_variations(("nominal", MOVED)) == [MOVED]
    assert allowed_variations(("nominal", "sign", "scale")) == ["scale", "sign"]
