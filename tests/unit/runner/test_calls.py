"""The arguments of a call as views of the input arena, and where its outputs may lie."""

from __future__ import annotations

import mmap
from dataclasses import replace

import pytest
import torch

from tilewright.runner import calls
from tilewright.wire.tensors import elements

BASE, BYTES = 4096, 256
ITEM = {"t": "tensor", "dtype": "float32", "shape": [8, 8], "stride": [8, 1], "offset": 0}
FIELDS = {"args": {"t": "tuple", "v": [ITEM]}, "writable": [[0, BYTES]], "shared": [[0, 1]]}


@pytest.fixture
def call():
    arena = mmap.mmap(-1, 4 * BASE)
    first = elements(arena, torch.uint8, 1).data_ptr()
    return calls.arguments(FIELDS, arena, BASE, first, len(arena))


def test_what_a_call_may_overwrite_has_the_addresses_of_its_arguments(call):
    (x,) = call.args
    assert call.writable == ((x.data_ptr(), x.data_ptr() + BYTES),)
    assert call.shared == {(0, 1)}


def test_an_output_lies_in_such_an_input_only_as_a_whole(call):
    (x,) = call.args
    assert calls.lies_in_writable(x, call)
    assert calls.lies_in_writable(x[2:4], call)
    first, last = call.writable[0]
    shifted = replace(call, writable=((first + 4, last + 4),))
    assert not calls.lies_in_writable(x, shifted)
    assert not calls.lies_in_writable(torch.zeros(8, 8), call)
    assert not calls.lies_in_writable("text", call)


def test_without_such_inputs_no_output_may_lie_there():
    arena = mmap.mmap(-1, 4 * BASE)
    call = calls.arguments({"args": FIELDS["args"]}, arena, BASE)
    assert call.writable == ()
    assert not calls.lies_in_writable(call.args[0], call)


def delivered(output, strides, **changes):
    call = calls.PreparedCall((), (), (), strides=(strides,), **changes)
    (leaf,), _ = calls.deliver(output, call=call)
    return leaf


def test_an_output_in_the_order_of_the_references_is_not_copied():
    output = torch.randn(8, 4).t()
    leaf = delivered(output, [1, 4])
    assert leaf.data_ptr() == output.data_ptr()
    assert leaf.stride() == output.stride()
    assert calls.permuted_places([torch.zeros(2, 2), leaf]) == 0b10


@pytest.mark.parametrize("strides", [None, [1, 8], [4, 1], [1, 4, 1]])
def test_one_in_another_order_is_copied(strides):
    output = torch.randn(8, 4).t()
    leaf = delivered(output, strides)
    assert leaf.is_contiguous()
    assert torch.equal(leaf, output)
    assert calls.permuted_places([leaf]) == 0


def test_a_contiguous_output_is_not_copied_either():
    output = torch.randn(4, 8)
    assert delivered(output, [1, 4]).data_ptr() == output.data_ptr()


def test_a_view_of_an_input_is_copied_in_its_own_order():
    output = torch.randn(8, 4).t()
    leaf = delivered(output, [1, 4], first_byte=output.data_ptr(), input_bytes=output.nbytes)
    assert leaf.stride() == output.stride()
    assert leaf.data_ptr() != output.data_ptr()
