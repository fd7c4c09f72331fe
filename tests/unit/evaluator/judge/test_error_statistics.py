"""Work that is left out shows in RMS and bias of the error; honest rounding does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tilewright.evaluator.judge import comparison, integer_comparison
from tilewright.evaluator.judge.comparison import Expected, compare, expect
from tilewright.evaluator.judge.error_statistics import excess, row_width, whole_limit
from tilewright.evaluator.judge.integer_comparison import OtherIntegers
from tilewright.evaluator.judge.variations import vary

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def wide(function: Function) -> Function:
    """Return the function computed in float32 and rounded once."""
    return lambda x: function(x.float()).to(x.dtype) if x.dtype != torch.float64 else function(x)


WEIGHT = torch.randn(512, 96, generator=generator(8)).bfloat16()


def mean_square(share: int) -> Function:
    return wide(lambda x: x[:, : x.shape[1] // share].square().mean(-1))


def energy(share: int) -> Function:
    return wide(lambda x: x[:, :: x.shape[1] // (x.shape[1] // share)].square().sum(-1) * share)


def decay(band: int) -> Function:
    def weighted(x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        gap = place[:, None] - place[None, :]
        weight = torch.where((gap >= 0) & (gap < band), 0.95 ** gap.clamp_min(0), 0.0)
        return x @ weight.to(x.dtype).T

    return wide(weighted)


def seven_bits(x: Tensor) -> Tensor:
    mantissa, exponent = torch.frexp(x.float())
    return torch.ldexp(torch.round(mantissa * 128) / 128, exponent)


CHEATS: dict[str, tuple[torch.dtype, Function, Function]] = {
    "mean square of a quarter": (BF16, mean_square(1), mean_square(4)),
    "mean square of an eighth": (BF16, mean_square(1), mean_square(8)),
    "energy of an eighth": (BF16, energy(1), energy(8)),
    "decay in a band": (BF16, decay(10**6), decay(96)),
    "hard swish": (BF16, functional.gelu, wide(lambda x: functional.hardswish(x * 1.7) / 1.7)),
    "three lines": (BF16, torch.sigmoid, wide(lambda x: (0.5 + 0.21 * x).clamp(0.05, 0.95))),
    "tanh GELU": (FP16, functional.gelu, wide(lambda x: functional.gelu(x, approximate="tanh"))),
    "7 bits": (
        BF16,
        wide(lambda x: x @ WEIGHT.to(x.dtype)),
        lambda x: (seven_bits(x) @ seven_bits(WEIGHT)).to(x.dtype),
    ),
}
HONEST: dict[str, tuple[torch.dtype, Function, Function]] = {
    "softmax in steps": (
        BF16,
        lambda x: torch.softmax(x, -1),
        lambda x: (x - x.amax(-1, True)).exp() / (x - x.amax(-1, True)).exp().sum(-1, True),
    ),
    "normalization in steps": (
        BF16,
        lambda x: functional.layer_norm(x, x.shape[-1:]),
        lambda x: (x - x.mean(-1, True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt(),
    ),
    "sigmoid in steps": (FP16, torch.sigmoid, lambda x: 1 / (1 + torch.exp(-x))),
    "GELU in steps": (FP16, functional.gelu, lambda x: x * 0.5 * (1 + torch.erf(x * 0.5**0.5))),
    "mean square in parts": (
        BF16,
        mean_square(1),
        wide(lambda x: sum(part.square().sum(-1) for part in x.split(32, -1)) / x.shape[1]),
    ),
    "tanh by exponential": (FP32, torch.tanh, lambda x: 1 - 2 / (1 + torch.exp(2 * x))),
}


def judged(kind: torch.dtype, reference: Function, answer: Function, variation: str) -> str:
    x = torch.randn(192, 512, generator=generator(1)).to(kind)
    x = vary(x, variation, generator(2))
    return compare(expect(reference(x), reference(x.double())), answer(x)).kind


@pytest.mark.parametrize("name", CHEATS)
def test_work_that_is_left_out_is_found(name):
    assert "values" in [
        judged(*CHEATS[name], variation) for variation in ("nominal", "uneven_parts")
    ]


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("variation", ["nominal", "uneven_parts"])
def test_honest_rounding_is_right(name, variation):
    assert judged(*HONEST[name], variation) == ""


def test_rows_and_columns_with_small_weights_may_not_be_zero():
    x, weight = torch.randn(64, 128, generator=generator(1)), torch.randn(128, 96)
    weight[:, 40:46] *= 1e-5
    oracle = x.double() @ weight.double()
    value = oracle.float()
    zero = value.clone()
    zero[:, 40:46] = 0
    columns, rows = Expected(value, oracle, 3e-5), Expected(value.T, oracle.T, 3e-5)

    assert compare(columns, value).kind == compare(rows, value.T).kind == ""
    assert "error of a column" in compare(columns, zero).message
    assert "error of a row" in compare(rows, zero.T.contiguous()).message


def test_a_fifth_of_the_outputs_may_not_be_zero_beside_heavy_tails():
    x = torch.randn(256, 512, generator=generator(3)).mul(5).exp()
    oracle = x.double() * 3
    output = x * 3
    output[output < output.flatten().kthvalue(output.numel() // 5).values] = 0

    assert "an eighth of the elements" in compare(expect(x * 3, oracle), output).message


def test_a_bias_is_found_where_each_error_is_small():
    oracle = torch.rand(128, 512, generator=generator(4), dtype=torch.float64) + 1
    value = oracle.half()
    biased = (oracle + 2.0**-12).half()

    assert "mean signed error" in compare(expect(value, oracle), biased).message


def test_an_output_of_a_timed_call_has_a_limit_for_its_rms():
    center = torch.randn(64, 256, generator=generator(5)).bfloat16()
    expected = Expected(center.to("meta"), None, 2.0**-9, error_rms=2.0**-11)
    near = center.clone()
    near[0, :8] += 2.0**-5
    far = (center.float() + 2.0**-5 * torch.randn(64, 256).sign()).bfloat16()

    assert compare(expected, near, center, 2.0).kind == ""
    assert compare(expected, far, center, 2.0).kind == "values"


def test_a_rough_reference_admits_no_rougher_candidate():
    """bfloat16 is eight times as rough as TF32, in which the reference may compute."""
    a, b = torch.randn(128, 256, generator=generator(6)), torch.randn(256, 128)

    def cut(x: Tensor, bits: int) -> Tensor:
        mantissa, exponent = torch.frexp(x)
        return torch.ldexp(torch.round(mantissa * 2.0**bits) / 2.0**bits, exponent)

    expected = expect(cut(a, 11) @ cut(b, 11), a.double() @ b.double())
    assert compare(expected, a @ b).kind == ""
    assert compare(expected, cut(a, 8) @ cut(b, 8)).kind == "values"


def test_a_row_is_the_smallest_stretch_with_enough_elements():
    assert row_width(torch.empty(8, 7, 7)) == 49
    assert row_width(torch.empty(4, 4)) == 16
    assert row_width(torch.tensor(1.0)) == 1


def test_a_reference_with_few_and_large_errors_passes_itself():
    """Nearly all outputs are exact zeros, so that the usual error of the reference is zero."""
    x = torch.randn(384, 128, generator=generator(9)) * 1e3
    weight = torch.randn(128, 512, generator=generator(10))

    def peaks(x: Tensor) -> Tensor:
        y = torch.exp(-(x @ weight.to(x.dtype)).square())
        return torch.where(y > 1e-3, 1e4 * y, 0.0)

    expected = expect(peaks(x), peaks(x.double()))
    assert expected.reference_error == 0
    assert compare(expected, peaks(x)).kind == ""
    assert compare(expected, peaks(x) * (1 + 2.0**-10)).kind == "values"
    assert compare(expected, peaks(x) + 1e-3).kind == "values"


def test_a_single_number_may_be_off_by_its_rounding():
    value = torch.tensor([3.0], dtype=BF16)
    assert excess(value, value.double(), value + 2.0**-6, 0.0).ratio <= 1
    assert whole_limit(value, 0.0) > 2.0**-6


def test_smaller_inputs_beside_constants_keep_the_noise_of_the_constants():
    x = torch.randn(64, 256, generator=generator(7)) / 64
    expected = expect(torch.expm1(x), torch.expm1(x.double()))
    honest = torch.exp(x) - 1

    assert compare(expected, honest).kind == "values"
    noisy = comparison.replace(expected, noise=4 * 2.0**-23)
    assert compare(noisy, honest).kind == ""
    assert compare(noisy, honest * 1.01).kind == "values"


def test_places_of_equal_values_are_equally_right():
    x = torch.tensor([[3.0, 1.0, 3.0, 2.0], [5.0, 5.0, 0.0, 5.0]])
    value = torch.tensor([[0, 2], [0, 1]])

    def same(value: torch.Tensor, output: torch.Tensor, sources: list[torch.Tensor]) -> bool:
        return integer_comparison.names_ties(value, output, sources, lambda _: False)

    assert same(value, torch.tensor([[2, 0], [3, 1]]), [x])
    assert not same(value, torch.tensor([[0, 0], [0, 1]]), [x])
    assert not same(value, torch.tensor([[0, 3], [0, 1]]), [x])
    assert not same(value, torch.tensor([[0, 9], [0, 1]]), [x])
    assert not same(value, torch.tensor([[2, 0], [3, 1]]), [torch.ones(2, 4)])
    assert same(torch.tensor([0, 0]), torch.tensor([2, 3]), [x])
    assert not same(torch.tensor([0, 0]), torch.tensor([1, 3]), [x])


@pytest.mark.parametrize(
    ("others", "deciding", "excused"),
    [
        ([torch.tensor([[0.1, 0.2, 0.3, 0.4]])], [1], False),
        ([torch.tensor([[0.1, 0.2, 0.3, 0.4]])], [], True),
        # Scores of tokens and experts, by number: no shape is that of the mask.
        ([torch.rand(1, 3), torch.rand(4, 3)], [2], False),
        ([torch.tensor([7])], [1], False),
    ],
)
def test_a_mask_that_is_the_same_at_two_places_decides_alone_or_not_at_all(
    others, deciding, excused
):
    mask, value, output = torch.tensor([[True, True, False, True]]), [3], [0]
    given = torch.tensor(value), torch.tensor(output), [mask, *others]

    assert integer_comparison.names_ties(*given, deciding.__contains__) is excused


def test_a_length_beside_scores_that_tie_decides_nothing():
    scores = torch.tensor([[2.0, 1.0, 2.0, 0.0]])
    given = torch.tensor([0]), torch.tensor([2]), [scores, torch.tensor([3])]

    assert integer_comparison.names_ties(*given, lambda index: index == 1)


def test_an_integer_of_a_rounded_oracle_is_accepted():
    other = OtherIntegers(torch.tensor([1, 3]))
    expected = Expected(torch.tensor([1, 2]), None, 0.0, accepted=(other,))
    assert compare(expected, torch.tensor([1, 3])).kind == ""
    assert compare(expected, torch.tensor([3, 2])).kind == "values"


@pytest.mark.parametrize("kind", [FP32, BF16, FP16])
def test_numbers_that_a_type_cannot_hold_may_be_flushed(kind):
    oracle = torch.full((64, 64), 1e-60, dtype=torch.float64)
    oracle[:, 0] = 1.0
    flushed = oracle.to(kind)
    rounded_up = torch.where(flushed == 0, torch.finfo(kind).tiny * torch.finfo(kind).eps, flushed)

    assert compare(expect(flushed, oracle), rounded_up.to(kind)).kind == ""
