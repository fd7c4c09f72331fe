"""Tensor layouts: values of every kind survive shared memory, and views stay inside it."""

from __future__ import annotations

import json
import mmap

import pytest
import torch

from tilewright.wire.tensors import DTYPES, Layout, LayoutError, build, view


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": 4000}, "do not fit"),
        ({"offset": -4}, "do not fit"),
        ({"shape": [1 << 40]}, "do not fit"),
        ({"dtype": "float1"}, "unknown dtype"),
    ],
)
def test_a_view_lies_inside_its_arena(change, message):
    item = {"dtype": "float32", "shape": [100], "stride": [1], "offset": 0, **change}

    with pytest.raises(LayoutError, match=message):
        view(mmap.mmap(-1, 4096), item, 0)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_survives_shared_memory(name):
    value = torch.ones(2, 3, dtype=DTYPES[name]).T
    layout = Layout()
    tree = layout.describe({"v": (value, [None, True, 3, 2.5, float("inf"), "s", value.dtype])})
    arena = mmap.mmap(-1, layout.size + 256)
    layout.write(arena, 256)
    back = build(json.loads(json.dumps(tree)), arena, 256)["v"]

    assert torch.equal(back[0], value)
    assert back[0].stride() == value.stride()
    assert back[1] == [None, True, 3, 2.5, float("inf"), "s", value.dtype]


@pytest.mark.parametrize("value", [object(), {1, 2}, torch.eye(2).to_sparse(), 1j])
def test_unsupported_values_are_refused(value):
    with pytest.raises(LayoutError):
        Layout().describe([value])
