"""Every cell of the audit builds a problem and a candidate, without the libraries."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.audit.cells import Cell, all_cells
from benchmarks.audit.libraries import LIBRARIES
from benchmarks.audit.operators import OPERATORS, Case
from tilewright.problems.loader import parse_problem

CELLS = all_cells()
TINY = {
    "rows": 4,
    "cols": 64,
    "tokens": 64,
    "hidden": 32,
    "m": 4,
    "k": 128,
    "n": 8,
    "heads": 2,
    "size": 8,
    "images": 2,
    "channels": 32,
    "pixels": 9,
    "intervals": 4,
    "batch": 2,
}
PRODUCTS = {"linear", "bmm", "attention", "paged_prefill", "fused_linear_cross_entropy"}
REDUCTIONS = {"softmax", "rms_norm", "row_sum", "layer_norm"}
BY_PROBLEM = {cell.problem_id: cell for cell in CELLS}


def tiny(case: Case) -> Case:
    """Return a case with sizes that take no time."""
    small = {key: TINY.get(key, value) for key, value in case.items()}
    if "queries" in small:
        small["queries"] = 1 if case["queries"] == 1 else small["tokens"]
    return small


def test_there_are_enough_cells():
    assert len(CELLS) >= 100
    assert len({cell.id for cell in CELLS}) == len(CELLS)
    assert set(Counter(cell.dtype for cell in CELLS)) == {"fp32", "bf16"}


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_each_library_has_ten_operators_of_all_kinds(library):
    operators = {call.operator for call in library.calls}
    assert len(operators) >= 10
    assert operators & PRODUCTS
    assert operators & REDUCTIONS
    assert any(call.backward for call in library.calls)
    assert library.not_judged
    assert library.claims
    assert all(item.reason for item in library.not_judged)


def test_each_operator_belongs_to_a_library():
    assert set(OPERATORS) == {call.operator for each in LIBRARIES.values() for call in each.calls}


def test_libraries_with_an_operator_share_its_problem():
    texts = defaultdict(set)
    for cell in CELLS:
        texts[cell.problem_id].add(cell.problem())
    assert all(len(found) == 1 for found in texts.values())


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
def test_the_texts_of_a_cell_parse(cell: Cell):
    problem = parse_problem(cell.problem(), cell.problem_id, cell.problem_id, "audit")
    assert [case.name for case in problem.cases] == [case["name"] for case in cell.operator.cases]
    assert bool(problem.grads) == cell.backward
    tree = ast.parse(cell.candidate(("import audit_kernels",)))
    work = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    assert [argument.arg for argument in work.args.args] == cell.operator.names.split(", ")


@pytest.mark.parametrize(
    ("name", "writable"),
    [
        ("rope-fp32", ("q", "k")),
        ("rope-bf16", ("q", "k")),
        ("cross_entropy-fp32", ()),
        ("cross_entropy-backward-fp32", ("x",)),
        ("softmax-fp32", ()),
    ],
)
def test_a_problem_names_the_inputs_that_libraries_may_overwrite(name, writable):
    problem = parse_problem(BY_PROBLEM[name].problem(), name, name, "audit")
    assert tuple(problem.writable_inputs) == writable


def test_inputs_that_any_call_may_overwrite_are_arguments():
    for operator in OPERATORS.values():
        assert set(operator.in_place) <= set(operator.names.split(", "))
        assert not set(operator.in_place) & set(operator.overwritten_backward)


@pytest.mark.parametrize("cell", BY_PROBLEM.values(), ids=BY_PROBLEM)
def test_a_reference_runs_on_tiny_shapes(cell: Cell):
    names: dict[str, object] = {}
    exec(cell.problem(), names)
    for case in cell.operator.cases:
        args = names["inputs"](tiny(case), torch.Generator().manual_seed(0))
        called = names["reference"](*args)
        outputs = called if isinstance(called, tuple) else (called,)
        assert all(output.isfinite().all() for output in outputs if output.element_size() > 1)
        if cell.backward:
            places = [cell.operator.names.split(", ").index(name) for name in names["GRADS"]]
            given = [args[place].requires_grad_() for place in places]
            called = names["reference"](*args)
            outputs = called if isinstance(called, tuple) else (called,)
            grads = torch.autograd.grad([output.sum() for output in outputs], given)
            assert [grad.shape for grad in grads] == [each.shape for each in given]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_reference_does_not_depend_on_the_dtype(dtype):
    cell = BY_PROBLEM[f"retention-{dtype}"]
    names: dict[str, object] = {}
    exec(cell.problem(), names)
    args = names["inputs"]({"tokens": 16}, torch.Generator().manual_seed(0))
    exact = names["reference"](*(each.double() for each in args))
    found = names["reference"](*args).double()
    assert torch.allclose(exact, found, atol=0.05 * exact.abs().max().item())


class Narrow(TorchDispatchMode):
    """Notes the operators that return less than float64. Lifetime: a `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        if isinstance(output, torch.Tensor) and output.dtype in (torch.float32, torch.bfloat16):
            self.found.append(str(func))
        return output


@pytest.mark.parametrize("cell", BY_PROBLEM.values(), ids=BY_PROBLEM)
def test_a_reference_computes_in_float64_where_its_inputs_are(cell: Cell):
    # Otherwise the judge's oracle rounds as the reference does, and no other rounding is allowed.
    names: dict[str, object] = {}
    exec(cell.problem(), names)
    for case in cell.operator.cases:
        args = names["inputs"](tiny(case), torch.Generator().manual_seed(0))
        wide = [each.double() if each.is_floating_point() else each for each in args]
        with Narrow() as narrow:
            names["reference"](*wide)
        assert narrow.found == []


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_jsd_is_defined_where_probabilities_are_too_small_for_the_dtype(dtype):
    names: dict[str, object] = {}
    exec(BY_PROBLEM[f"jsd-backward-{dtype}"].problem(), names)
    x, y = names["inputs"]({"rows": 4, "cols": 64}, torch.Generator().manual_seed(0))
    x[:, :8], y[:, :8] = x[:, :8] - 300, y[:, :8] - 300
    assert (x[:, :8].exp() == 0).all()
    loss = names["reference"](x.requires_grad_(), y)
    (grad,) = torch.autograd.grad(loss, x)

    p, q = y.detach().double().exp(), x.detach().double().exp()
    m = (p + q) / 2
    exact = 0.5 * (p * (p / m).log() + q * (q / m).log()).sum() / 4
    assert loss.dtype == x.dtype
    assert torch.isclose(loss.double(), exact, rtol=2 * torch.finfo(x.dtype).eps)
    assert torch.allclose(grad.double(), 0.125 * q * (q / m).log(), atol=1e-3)
