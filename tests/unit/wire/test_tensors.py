"""Tensor layouts: values of every kind survive shared memory, and views stay inside it."""

from __future__ import annotations

import json
import math
import mmap
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilewright.wire.tensors import DTYPES, Layout, LayoutError, build, permuted_strides, view


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


def there_and_back(value: Any) -> Any:
    layout = Layout()
    tree = layout.describe(value)
    arena = mmap.mmap(-1, layout.size)
    layout.write(arena)
    return build(json.loads(json.dumps(tree)), arena, 0)


def test_an_object_arrives_as_its_public_attributes():
    class Config:
        def __init__(self) -> None:
            self.block, self.inner, self._hidden = 64, {"warps": [4]}, object()

    assert there_and_back([Config()]) == [SimpleNamespace(block=64, inner={"warps": [4]})]


def test_what_an_object_has_lost_is_named():
    class Cache:
        def __init__(self) -> None:
            self.used = 0

        def zero(self) -> None:
            self.used = 0

    [cache] = there_and_back([Cache()])
    with pytest.raises(AttributeError, match=r"no 'zero': .* attributes alone \(used\)"):
        cache.zero()
    with pytest.raises(TypeError, match=r"cannot be called: .* attributes alone \(used\)"):
        cache(3)
    assert not hasattr(cache, "zero")


def test_a_module_arrives_as_its_tensors_and_settings():
    module = torch.nn.Sequential(torch.nn.LayerNorm(3, eps=0.5), torch.nn.BatchNorm1d(3))
    back = there_and_back(module)

    norm = getattr(back, "0")
    assert torch.equal(norm.weight, torch.ones(3))
    assert (norm.eps, norm.normalized_shape, back.training) == (0.5, (3,), True)
    assert torch.equal(getattr(back, "1").running_mean, torch.zeros(3))


def test_a_device_is_that_of_the_arena_and_a_dtype_of_triton_keeps_its_name():
    language = pytest.importorskip("triton.language")
    assert there_and_back([torch.device("cuda:0"), language.float8e5]) == [
        torch.device("cpu"),
        language.float8e5,
    ]


@pytest.mark.parametrize(
    "value", [object(), len, torch.nn.Module, {1, 2}, torch.eye(2).to_sparse(), 1j]
)
def test_unsupported_values_are_refused(value):
    with pytest.raises(LayoutError):
        Layout().describe([value])


@given(
    sizes=st.lists(st.integers(0, 4), min_size=0, max_size=5),
    order=st.permutations(range(5)),
    step=st.integers(1, 2),
)
def test_a_tensor_with_permuted_strides_is_read_from_flat_memory(sizes, order, step):
    kept = [place for place in order if place < len(sizes)]
    whole = torch.arange(math.prod(sizes) * step).view(*sizes, step)
    value = whole.permute(*kept, len(sizes))[..., 0]
    strides = permuted_strides(value)

    if strides is None:
        assert value.is_contiguous() or step > 1
    else:
        assert not value.is_contiguous()
        flat = torch.arange(value.numel())
        # Every element of the memory is one of the tensor.
        again = flat.as_strided(value.shape, strides)
        assert sorted(again.flatten().tolist()) == flat.tolist()
        if step == 1:
            assert torch.equal(again, value)


def test_an_expanded_tensor_has_no_permuted_strides():
    assert permuted_strides(torch.zeros(3, 1).expand(3, 4)) is None
    assert permuted_strides(torch.zeros(4, 3).t()) == [1, 3]
    assert permuted_strides(torch.zeros(4, 6).t()[:3]) is None
