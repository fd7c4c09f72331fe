"""Which outputs a candidate keeps, by counts of references."""

from __future__ import annotations

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


def found_for(function):
    kept = KeptOutputs.measure()
    with torch.no_grad():
        output = function()
    leaves, _ = calls.deliver(output)
    originals, _ = calls.flatten(output)
    try:
        return kept.are_kept(originals, leaves)
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


def test_each_view_is_copied_where_torch_does_not_count_tensors(monkeypatch):
    monkeypatch.setattr(kept_outputs, "_tensor_count", None)
    assert found_for(dropped_view) == [True]
    assert found_for(lambda: torch.zeros(3)) == [False]


def test_what_is_no_tensor_is_not_kept():
    assert found_for(lambda: (3.0, torch.zeros(2))) == [False, False]
