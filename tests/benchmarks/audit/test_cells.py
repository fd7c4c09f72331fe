"""Every cell of the audit builds a problem and a candidate, without the libraries."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict

import pytest
import torch

from benchmarks.audit.cells import Cell, all_cells
from benchmarks.audit.libraries import LIBRARIES
from benchmarks.audit.operators import OPERATORS
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


@pytest.mark.parametrize("cell", BY_PROBLEM.values(), ids=BY_PROBLEM)
def test_a_reference_runs_on_tiny_shapes(cell: Cell):
    names: dict[str, object] = {}
    exec(cell.problem(), names)
    for case in cell.operator.cases:
        small = {key: TINY.get(key, value) for key, value in case.items()}
        if "queries" in small:
            small["queries"] = 1 if case["queries"] == 1 else small["tokens"]
        args = names["inputs"](small, torch.Generator().manual_seed(0))
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
