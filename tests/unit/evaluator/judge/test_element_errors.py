"""Which elements of an output a reference defines: those that do not depend on the memory's fill.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import pytest
import torch

from tilewright.evaluator.judge.element_errors import defined_mask


@pytest.mark.parametrize("other", [3.0, float("nan"), float("inf")])
def test_an_element_with_another_value_on_another_fill_is_undefined(other):
    value, again = torch.ones(4), torch.ones(4)
    again[2] = other
    mask = defined_mask(value, again)
    assert mask is not None
    assert mask.tolist() == [True, True, False, True]


def test_sums_in_another_order_are_defined():
    value = torch.ones(4)
    assert defined_mask(value, value * (1 + 4e-7)) is None
    assert defined_mask(value, value.clone()) is None
