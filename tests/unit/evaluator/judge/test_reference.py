"""The reference: loaded under its seed, run in its own precision and in float64."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from tilewright.evaluator.judge import float64_oracle
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.float64_oracle import run_double
from tilewright.evaluator.judge.reference import ProblemFailure, Reference

pytestmark = pytest.mark.usefixtures("problem_module")

MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.linear = torch.nn.Linear(width, 3, bias=bias)

    def forward(self, x, scale=2.0):
        return self.linear(x) * scale

def get_inputs():
    return [torch.rand(4, 5)]

def get_init_inputs():
    return INIT
"""
FUNCTION = """
import torch

def inputs(case, generator):
    return torch.randn(case["n"], generator=generator)

def reference(x):
    return x.exp()
"""


def load(source: str, kind: str = "function", **changes: Any) -> Reference:
    fields = {"problem_kind": kind, "mode": "train", "grads": [], "keywords": [], "init_seed": 5}
    fields |= changes
    return refs.load(source, fields)


@pytest.mark.parametrize("init", ["[5]", "[5, False]", "{'width': 5, 'bias': False}"])
def test_a_module_is_built_from_a_list_or_a_dict(init):
    reference = load(MODULE.replace("INIT", init), "module")

    assert reference.model is not None
    assert reference.model.training
    assert ("False" not in init) == (reference.model.linear.bias is not None)


def test_a_module_without_init_inputs_is_built_from_nothing():
    source = MODULE.replace("self, width", "self, width=5").partition("def get_init_inputs")[0]
    model = load(source, "module", mode="eval").model

    assert model is not None
    assert not model.training


def test_the_init_seed_decides_the_weights():
    source = MODULE.replace("INIT", "[5]")
    first, again = load(source, "module"), load(source, "module")
    other = load(source, "module", init_seed=6)

    assert torch.equal(first.model.linear.weight, again.model.linear.weight)
    assert not torch.equal(first.model.linear.weight, other.model.linear.weight)


def test_inputs_follow_the_seed_in_every_generator():
    source = """
import random
import numpy
import torch

def inputs(case, generator):
    return (torch.rand(3), torch.randn(3, generator=generator), numpy.random.rand(),
            random.random(), case["n"])

def reference(*args):
    return args[0]
"""
    reference = load(source)
    first = reference.arguments({"n": 2}, (1 << 62) + 1)
    again = reference.arguments({"n": 2}, (1 << 62) + 1)
    other = reference.arguments({"n": 2}, (1 << 62) + 2)

    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert first[2:] == again[2:]
    assert not torch.equal(first[0], other[0])
    assert not torch.equal(first[1], other[1])
    assert first[2:4] != other[2:4]


def test_case_parameters_are_handed_over_as_a_copy():
    source = FUNCTION.replace(
        "    return torch.randn", "    case['n'] += 1\n    return torch.randn"
    )
    params = {"n": 2}

    assert tuple(load(source).arguments(params, 1)[0].shape) == (3,)
    assert params == {"n": 2}


@pytest.mark.parametrize(
    ("source", "kind", "step"),
    [
        ("def broken(:", "function", "loading the problem: SyntaxError"),
        ("import nothing_of_this_name", "function", "loading the problem: ModuleNotFoundError"),
        ("raise KeyError('x')", "module", "loading the problem: KeyError"),
        ("x = 1", "module", "building the reference model: AttributeError"),
        (MODULE.replace("INIT", "[5, 6, 7]"), "module", "building the reference model: TypeError"),
        (MODULE.replace("INIT", "1 / 0"), "module", "building the reference model: ZeroDivision"),
        ("x = 1", "function", "finding `reference`: AttributeError"),
    ],
)
def test_a_problem_that_does_not_load_names_the_failing_step(source, kind, step):
    with pytest.raises(ProblemFailure, match=step):
        load(source, kind)


def test_a_problem_that_raises_later_names_the_failing_step():
    bad_inputs = load(FUNCTION.replace('case["n"]', 'case["m"]'))
    with pytest.raises(ProblemFailure, match="generating inputs: KeyError"):
        bad_inputs.arguments({"n": 1}, 1)

    bad_reference = load(FUNCTION.replace("x.exp()", "x + missing"))
    with pytest.raises(ProblemFailure, match="running the reference: NameError"):
        refs.run(bad_reference, [torch.ones(2)], [], 1)


@pytest.mark.parametrize("value", ["1j", "'x'", "[x, b'']", "{'a': len}"])
def test_outputs_other_than_tensors_are_a_problem_failure(value):
    reference = load(FUNCTION.replace("x.exp()", value))

    with pytest.raises(ProblemFailure, match="not a tensor"):
        refs.run(reference, [torch.ones(2)], [], 1)


def test_none_is_no_output_and_there_must_be_one():
    assert (
        len(refs.run(load(FUNCTION.replace("x.exp()", "[x, None]")), [torch.ones(2)], [], 1)[0])
        == 1
    )
    with pytest.raises(ProblemFailure, match="returned no tensor and overwrote no argument"):
        refs.run(load(FUNCTION.replace("x.exp()", "None")), [torch.ones(2)], [], 1)


@pytest.mark.parametrize(
    ("value", "kind", "count"),
    [
        ("x", "1", 1),
        ("(x, x + 1)", "2", 2),
        ("[x, (x, x)]", "3", 3),
        ("{'a': x, 'b': (x, x)}", "a,b", 3),
    ],
)
def test_tuples_lists_and_dicts_are_walked_in_order(value, kind, count):
    reference = load(FUNCTION.replace("x.exp()", value))
    outputs, structure = refs.run(reference, [torch.ones(2)], [], 1)

    assert (kind, count) == (structure, len(outputs))


def test_an_in_place_reference_leaves_the_given_inputs_unchanged():
    reference = load(FUNCTION.replace("x.exp()", "x.add_(1)"))
    x = torch.zeros(3)
    outputs, _ = refs.run(reference, [x], [], 1)
    doubled = run_double(reference, [x], [], 1)

    assert torch.equal(torch.zeros(3), x)
    assert torch.equal(torch.ones(3), outputs[0])
    assert doubled is not None
    assert torch.equal(torch.ones(3).double(), doubled[0])


def test_the_forward_seed_decides_what_is_drawn_inside():
    reference = load(FUNCTION.replace("x.exp()", "x + torch.rand_like(x)"))
    first, _ = refs.run(reference, [torch.zeros(9)], [], 1)
    again, _ = refs.run(reference, [torch.zeros(9)], [], 1)
    other, _ = refs.run(reference, [torch.zeros(9)], [], 2)

    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])


def test_float64_is_float64_throughout():
    source = FUNCTION.replace("x.exp()", "x * torch.tensor(0.1) + torch.full((1,), 0.1)")
    x = torch.ones(1)
    doubled = run_double(load(source), [x], [], 1)

    assert doubled is not None
    assert pytest.approx(float(doubled[0]), abs=1e-15) == 0.2
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("body", "exact"),
    [
        ("x.float().cumsum(-1)", True),
        ("x.to(torch.float32).cumsum(-1)", True),
        ("x.cumsum(-1, dtype=torch.float32)", True),
        ("(torch.zeros(9, dtype=torch.float32) + x).cumsum(-1)", True),
        ("x.bfloat16().double().cumsum(-1)", False),
        ("x.to(torch.bfloat16).to(torch.float32).cumsum(-1)", False),
        ("x.half().float().cumsum(-1)", False),
    ],
)
def test_float32_means_float64_where_a_reference_names_it(body, exact):
    """Types of 16 bits round on purpose."""
    x = torch.rand(9, generator=torch.Generator().manual_seed(0))
    (doubled,) = run_double(load(FUNCTION.replace("x.exp()", body)), [x], [], 1)

    distance = float((doubled - x.double().cumsum(-1)).abs().max())
    assert (distance == 0) if exact else (1e-5 < distance < 0.1)


def test_a_view_of_bits_stays_a_view_of_bits():
    body = "x.float().view(torch.int32).view(torch.float32)"
    (doubled,) = run_double(load(FUNCTION.replace("x.exp()", body)), [torch.ones(4)], [], 1)

    assert doubled.shape == (8,), "as without the mode: the caller leaves such an oracle out"


def test_a_modules_float64_copy_follows_its_weights():
    reference = load(MODULE.replace("INIT", "[5]"), "module")
    x = torch.ones(1, 5)
    first = run_double(reference, [x], [], 1)
    with torch.no_grad():
        reference.model.linear.bias.add_(1.0)
    stale = run_double(reference, [x], [], 1)
    reference.precision.double = None
    fresh = run_double(reference, [x], [], 1)

    assert torch.equal(first[0], stale[0])
    assert torch.allclose(first[0] + 2.0, fresh[0], rtol=0, atol=1e-6)


def test_integers_and_nested_arguments_cross_into_float64():
    source = FUNCTION.replace("(x)", "(pair, index)").replace(
        "x.exp()", "(pair[0] * 2, index + 1, pair[1])"
    )
    nested = [torch.ones(2), torch.tensor([True])]
    doubled = run_double(load(source), [nested, torch.tensor([4])], [], 1)

    assert doubled is not None
    assert [torch.float64, torch.int64, torch.bool] == [value.dtype for value in doubled]


def test_named_arguments_cross_into_float64_and_are_copied():
    source = FUNCTION.replace("(x)", "(given, index)").replace(
        "x.exp()", "(given['x'].add_(1), index.add_(1))"
    )
    given, index = {"x": torch.ones(2)}, torch.tensor([4])
    doubled = run_double(load(source), [given, index], [], 1)

    assert doubled is not None
    assert [value.dtype for value in doubled] == [torch.float64, torch.int64]
    assert torch.equal(given["x"], torch.ones(2))
    assert index.item() == 4


def test_a_reference_that_cannot_run_in_float64_has_no_float64_result():
    source = FUNCTION.replace("x.exp()", "x.view(torch.int32).float()")
    reference = load(
        FUNCTION.replace(
            "x.exp()", "torch.mm(x, torch.tensor(torch.ones(2, 2).numpy().astype('f4')))"
        )
    )

    assert run_double(reference, [torch.ones(2, 2)], [], 1) is None
    assert torch.get_default_dtype() == torch.float32
    assert run_double(load(source), [torch.ones(2)], [], 1) is not None


def test_a_slow_reference_gets_no_second_float64_run(monkeypatch):
    reference = load(FUNCTION)
    monkeypatch.setattr(float64_oracle, "ORACLE_BUDGET_S", 0.0)
    reference.call_s = 1.0
    assert run_double(reference, [torch.ones(2)], [], 1) is None

    reference.call_s = 0.0
    assert run_double(reference, [torch.ones(2)], [], 1) is not None
    assert reference.precision.is_slow
    assert run_double(reference, [torch.ones(2)], [], 1) is None


def test_gradients_follow_the_outputs():
    source = FUNCTION.replace("(x)", "(x, k, w)").replace("x.exp()", "(x * w * k, k)")
    reference = load(source, grads=["w", "x"])
    x, w = torch.full((3,), 2.0), torch.full((3,), 5.0)
    seeds = [torch.tensor([1.0, 10.0, 100.0])]
    outputs, structure = refs.run(reference, [x, torch.tensor(3), w], seeds, 1)

    assert reference.positions(reference.grads) == [2, 0]
    assert structure == "4"
    assert outputs[2].tolist() == [6.0, 60.0, 600.0]
    assert outputs[3].tolist() == [15.0, 150.0, 1500.0]
    assert not any(value.requires_grad for value in outputs)
    reference.call_s = 0.0
    doubled = run_double(reference, [x, torch.tensor(3), w], seeds, 1)
    assert doubled is not None
    assert doubled[2].tolist() == [6.0, 60.0, 600.0]


def test_without_given_gradients_ones_flow_back():
    reference = load(FUNCTION.replace("x.exp()", "x * 3"), grads=["x"])
    outputs, _ = refs.run(reference, [torch.ones(2)], [], 1)

    assert outputs[1].tolist() == [3.0, 3.0]


def test_a_missing_argument_is_a_problem_failure():
    with pytest.raises(ProblemFailure, match="finding GRADS and DONATES"):
        load(FUNCTION).positions(["z"])


def test_a_builtin_without_a_signature_is_a_reference_too():
    source = FUNCTION.partition("def reference")[0] + "reference = torch.relu\n"
    outputs, _ = refs.run(load(source), [torch.tensor([-1.0, 2.0])], [], 1)

    assert outputs[0].tolist() == [0.0, 2.0]
    with pytest.raises(ProblemFailure, match="finding GRADS and DONATES"):
        load(source).positions(["x"])


def test_drawing_inputs_leaves_the_global_generator_unchanged():
    load(FUNCTION).arguments({"n": 3}, 9)
    first = random.random()
    load(FUNCTION).arguments({"n": 3}, 9)

    assert first == random.random()


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("", None),
        ("FLOPS = 7", 7),
        ("FLOPS = 1e3", 1000),
        ("def FLOPS(case): return 2 * case['n']", 10),
    ],
)
def test_a_problem_declares_operations_and_bytes_per_case(said, count):
    assert load(f"{FUNCTION}\n{said}\n").declared("FLOPS", {"n": 5}) == count


@pytest.mark.parametrize("said", ["'many'", "True", "-1", "float('nan')", "lambda case: 1 / 0"])
def test_a_declared_value_that_is_no_count_is_a_problem_failure(said):
    with pytest.raises(ProblemFailure, match="BYTES"):
        load(f"{FUNCTION}\nBYTES = {said}\n").declared("BYTES", {"n": 5})


BROKEN_INPUTS = """import torch


def inputs(case, generator):
    return (torch.randn(case["m"]),)


def reference(x):
    return x
"""


def test_an_error_of_the_problem_names_its_line():
    with pytest.raises(ProblemFailure, match=r"KeyError: 'm' \(problem.py:5 in inputs\)$"):
        load(BROKEN_INPUTS).arguments({}, 1)
    with pytest.raises(ProblemFailure, match=r"\(problem.py:3 in <module>\)$"):
        load("import torch\n\nraise ValueError('no')\n")


def test_a_problem_that_is_loaded_again_leaves_no_further_folder():
    folders = {load(FUNCTION).function.__code__.co_filename for _ in range(3)}
    assert len(folders) == 1


@pytest.mark.parametrize("count", [64, 65])
def test_a_reference_may_return_as_many_tensors_as_a_call_can_report(count):
    reference = load(f"def reference(x):\n    return [x + n for n in range({count})]\n")
    if count == 64:
        assert len(refs.run(reference, [torch.ones(2)], [], 1)[0]) == 64
        return
    with pytest.raises(ProblemFailure, match="returned 65 tensors, at most 64"):
        refs.run(reference, [torch.ones(2)], [], 1)
