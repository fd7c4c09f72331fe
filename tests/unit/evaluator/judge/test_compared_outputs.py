"""Each output is compared with its own expected value, of its own input sample.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import pytest
import torch

from tilewright.evaluator.judge.comparison import Expected, compare, expect

TWO_OUTPUTS = """import torch


def inputs(case, generator):
    return (torch.randn(case["n"], 4, generator=generator),)


def reference(x):
    return x * 3, x.sum(-1)
"""


def test_the_allowed_error_is_a_few_roundings_and_a_few_of_the_references_errors():
    """Whatever the constants are calibrated to, they stay of this order."""
    one, eps = torch.ones(1), torch.finfo(torch.float32).eps
    exact, rough = Expected(one, one.double(), 0.0), Expected(one, one.double(), 1e-3)

    assert compare(exact, one + 4 * eps).kind == ""
    assert compare(exact, one + 100 * eps).kind == "values"
    assert compare(rough, one + 2e-3).kind == ""
    assert compare(rough, one + 50e-3).kind == "values"


def test_one_element_among_many_may_be_off_by_a_few_of_the_references_errors():
    """The error of a single element does not show in that of the whole output."""
    signs = torch.tensor([1.0, -1.0]).repeat(2048)
    rough = Expected(1 + 1e-3 * signs, torch.ones(4096, dtype=torch.float64), 1e-3)
    near, far = torch.ones(4096), torch.ones(4096)
    near[7] += 2e-3
    far[7] += 200e-3

    assert compare(rough, near).kind == ""
    assert compare(rough, far).kind == "values"
    assert "[7]" in compare(rough, far).message


def test_many_errors_that_are_allowed_by_themselves_are_no_rounding():
    torch.manual_seed(0)
    exact = torch.rand(64, 256, dtype=torch.float64) + 1
    value = exact.bfloat16()
    eps = torch.finfo(torch.bfloat16).eps
    off = (exact + 6 * eps).bfloat16()

    assert compare(expect(value, exact), value).kind == ""
    assert compare(expect(value, exact), off).kind == "values"
    assert "elements are wrong" not in compare(expect(value, exact), off).message


def test_each_output_alone_can_be_wrong(judge):
    judge.load(TWO_OUTPUTS)
    judge.map()
    (x,) = judge.inputs(judge.sample())

    assert judge.check(x * 3, x.sum(-1))["wrong"] == ""
    assert judge.check(x * 3 + 1, x.sum(-1))["wrong"] == "values"
    assert judge.check(x * 3, x.sum(-1) + 1)["wrong"] == "values"


def test_each_output_of_a_timed_call_alone_can_be_wrong(judge):
    judge.load(TWO_OUTPUTS)
    judge.map()
    (x,) = judge.inputs(judge.sample())
    for outputs, wrong in (
        ((x * 3, x.sum(-1)), ""),
        ((x * 3 + 1, x.sum(-1)), "values"),
        ((x * 3, torch.zeros(4)), "values"),
    ):
        answer = judge.timed("candidate", *outputs, expect=True, compare=True)
        assert answer["wrong"] == wrong


def test_an_output_is_compared_with_the_expected_value_of_its_own_sample(judge):
    judge.load(TWO_OUTPUTS)
    judge.map()
    fields = {"params": {"n": 4}, "variation": "nominal", "forward_seed": 1, "timed": False}
    first = judge.ask("sample", sample="first", seed=1, **fields)
    (x,) = (value.clone() for value in judge.inputs(judge.sample(seed=2)))
    judge.timed("candidate", x * 3, x.sum(-1))
    described = judge.put(x * 3, x.sum(-1))

    said = {"runner": "candidate", "outputs": described}
    assert judge.ask("check", sample="d", **said)["wrong"] == ""
    assert judge.ask("check", sample="first", **said)["wrong"] == "values"
    assert first["outputs"] == [
        {"dtype": "float32", "shape": [4, 4]},
        {"dtype": "float32", "shape": [4]},
    ]


PERMUTED = """import torch


def inputs(case, generator):
    return (torch.randn(case["n"], 6, generator=generator),)


def reference(x):
    return (x * 3).t(), x + 1
"""


def test_an_output_is_read_in_the_order_that_its_runner_reports(judge):
    judge.load(PERMUTED)
    judge.map()
    sample = judge.sample()
    assert sample["places"]["strides"] == [[1, 6], None]
    (x,) = judge.inputs(sample)
    right, other = (x * 3).t(), x + 1
    memory = (x * 3).contiguous()
    for outputs, permuted, wrong in (
        ((right, other), [], ""),
        ((memory.view(6, -1), other), [], "values"),
        # The same bytes are right with the strides of the reference's output.
        ((memory.view(6, -1), other), [0], ""),
        # The reference's second output has no order of its own, so this report has no effect.
        ((memory.view(6, -1), other), [0, 1], ""),
        ((right.contiguous(), other), [0], "values"),
    ):
        answer = judge.timed("candidate", *outputs, expect=True, compare=True, permuted=permuted)
        assert answer["wrong"] == wrong


def test_an_output_in_the_inputs_has_no_order_of_its_own(judge):
    source = PERMUTED.replace("(x * 3).t()", "(x * 1).t()")
    judge.load(source)
    judge.map()
    (x,) = judge.inputs(judge.sample())
    other = x + 1
    addresses = [x.data_ptr(), other.data_ptr()]
    answer = judge.timed(
        "candidate",
        x.t().contiguous(),
        other,
        expect=True,
        compare=True,
        permuted=[0],
        addresses=addresses,
    )
    assert answer["wrong"] == "values"
    assert answer["misplaced"]


@pytest.mark.parametrize("timed", [False, True])
def test_a_report_has_no_effect_if_the_reference_is_not_dense(judge, timed):
    judge.load(PERMUTED.replace("(x * 3).t()", "(x * 3).t()[:-1]"))
    judge.map()
    sample = judge.sample(timed=timed)
    assert sample["places"]["strides"] == [None, None]
    (x,) = judge.inputs(sample)
    memory, other = (x[:, :-1] * 3).contiguous(), x + 1
    for output, wrong in (((x * 3).t()[:-1], ""), (memory.view(5, -1), "values")):
        answer = judge.timed("candidate", output, other, expect=True, compare=True, permuted=[0])
        assert answer["wrong"] == wrong
