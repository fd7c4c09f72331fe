"""Which outputs a candidate keeps, by counts of references."""

from __future__ import annotations

import itertools

import pytest
import torch

from tilewright.runner import calls, kept_outputs
from tilewright.runner.kept_outputs import KeptOutputs

KEPT = []


def dropped_view():
    whole = torch.zeros(4, 4)
    return whole.view(16)


def view_of_a_view():
    whole = torch.zeros(4, 4)
    return whole.view(2, 8).view(16)


def several():
    return {"a": torch.zeros(3), "b": [dropped_view(), torch.ones(2)]}


def permuted():
    # Not dense: its caller makes a copy anyway.
    KEPT.append(torch.zeros(4, 5))
    return KEPT[-1].t()


def kept_tensor():
    KEPT.append(torch.zeros(4))
    return KEPT[-1]


def detached_tensor():
    made = torch.zeros(4)
    KEPT.append(made.detach())
    return made


def view_of_kept_base():
    KEPT.append(torch.zeros(4, 4))
    return KEPT[-1].view(16)


def kept_view():
    made = dropped_view()
    KEPT.append(made)
    return made


def view_beside_another():
    whole = torch.zeros(4, 4)
    KEPT.append(whole.view(2, 8))
    return whole.view(16)


def kept_part():
    KEPT.append(torch.zeros(4))
    return {"a": [KEPT[-1]]}


def view_of_detached_base():
    whole = torch.zeros(4, 4)
    KEPT.append(whole.detach())
    return whole.view(16)


def found_for(function, shared=frozenset()):
    kept = KeptOutputs.measure()
    with torch.no_grad():
        output = function()
    leaves, _ = calls.deliver(output)
    originals, _ = calls.flatten(output)
    try:
        return kept.are_kept(originals, leaves, shared)
    finally:
        KEPT.clear()


@pytest.mark.parametrize("function", [dropped_view, view_of_a_view, several, permuted])
def test_an_output_of_its_call_alone_is_not_kept(function):
    assert not any(found_for(function))


@pytest.mark.parametrize(
    "function",
    [
        kept_tensor,
        detached_tensor,
        view_of_kept_base,
        kept_view,
        view_beside_another,
        view_of_detached_base,
        kept_part,
    ],
)
def test_an_output_that_something_refers_to_is_kept(function):
    assert found_for(function) == [True]


def same_twice():
    made = torch.zeros(4)
    return made, {"again": made}


def view_twice():
    made = dropped_view()
    return made, made


def kept_one_of_two():
    made = torch.zeros(4)
    KEPT.append(made)
    return made, made


def kept_alias_of_two():
    made = torch.zeros(4)
    KEPT.append(made.detach())
    return made, made


def kept_view_twice():
    made = dropped_view()
    KEPT.append(made)
    return made, made


def parts():
    return torch.zeros(4, 3).unbind()


def kept_part_of_parts():
    made = torch.zeros(4, 3).unbind()
    KEPT.append(made[0])
    return made


def kept_base_of_parts():
    KEPT.append(torch.zeros(4, 3))
    return KEPT[-1].unbind()


def kept_view_of_parts():
    whole = torch.zeros(4, 3)
    KEPT.append(whole[1:])
    return whole.unbind()


ALL = frozenset(itertools.combinations(range(4), 2))


@pytest.mark.parametrize("function", [same_twice, view_twice])
def test_an_output_at_two_places_is_kept_unless_the_reference_returns_it_so(function):
    assert found_for(function) == [True, True]
    assert found_for(function, ALL) == [False, False]


@pytest.mark.parametrize("shared", [frozenset(), ALL])
def test_parts_of_one_memory_are_not_kept(shared):
    assert not any(found_for(parts, shared))


@pytest.mark.parametrize(
    "function",
    [
        kept_one_of_two,
        kept_alias_of_two,
        kept_view_twice,
        kept_part_of_parts,
        kept_base_of_parts,
        kept_view_of_parts,
    ],
)
def test_outputs_of_one_memory_are_kept_if_anything_else_refers_to_them(function):
    assert any(found_for(function, ALL))


def test_a_gradient_of_two_inputs_is_not_kept():
    def summed(one, other):
        return torch.softmax(one + other, -1)

    kept, ones = KeptOutputs.measure(), torch.ones(3, 4)
    call = calls.PreparedCall((torch.randn(3, 4), torch.randn(3, 4)), (0, 1), (ones,))
    output = calls.run(summed, call)
    leaves, _ = calls.deliver(output)
    originals, _ = calls.flatten(output)
    assert leaves[1].data_ptr() == leaves[2].data_ptr()
    assert not any(kept.are_kept(originals, leaves, frozenset({(1, 2)})))


def test_each_view_is_copied_where_torch_does_not_count_tensors(monkeypatch):
    monkeypatch.setattr(kept_outputs, "_tensor_count", None)
    assert found_for(dropped_view) == [True]
    assert found_for(lambda: torch.zeros(3)) == [False]


def test_what_is_no_tensor_is_not_kept():
    assert found_for(lambda: (3.0, torch.zeros(2))) == [False, False]
