"""Whether a runner's description of an output fits what is expected: kind, shape, dtype, device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.evaluator.judge.comparison import Expected, Mismatch
from tilewright.wire.tensors import dtype_name

MAX_STRUCTURE_CHARACTERS = 200
"""Most characters of the description of nested outputs that are compared."""


def shape_mismatch(
    expected: Sequence[Expected],
    structure: str,
    outputs: Sequence[Mapping[str, Any]],
    devices: Sequence[str],
) -> Mismatch | None:
    """Compare a runner's description of all outputs with the expected ones; `None`: it fits.

    `devices` are the devices on which each of them may lie besides the expected value's.
    """
    if len(outputs) != len(expected):
        message = f"expected {len(expected)} outputs, got {len(outputs)}"
        return Mismatch("count", message)
    found = outputs[0].get("structure", "1") if outputs else "1"
    known = structure[:MAX_STRUCTURE_CHARACTERS]
    # A single value is also accepted for a dict of one: the C ABI has no dicts.
    if found != known and not (found.isdigit() and "," not in known):
        return Mismatch("count", f"expected {_shown(known)}, got {_shown(found)}")
    for item, described, also in zip(expected, outputs, devices, strict=True):
        mismatch = describe_mismatch(item, described, also)
        if mismatch is not None:
            return mismatch
    return None


def _shown(structure: str) -> str:
    return "no dict" if structure.isdigit() else f"a dict of {structure}"


def describe_mismatch(expected: Expected, item: Mapping[str, Any], also: str) -> Mismatch | None:
    """Compare a runner's description of an output with the expected one; `None`: it fits.

    The output may lie on the expected value's device, or on the device `also`.
    """
    value = expected.value
    shape, dtype, device = list(value.shape), dtype_name(value.dtype), value.device.type
    if item.get("type") != "tensor":
        return Mismatch("dtype", f"expected a torch.Tensor, got {item.get('type')}")
    if item["shape"] != shape:
        return Mismatch("shape", f"expected shape {shape}, got {item['shape']}")
    if item["dtype"] != dtype:
        return Mismatch("dtype", f"expected {dtype}, got {item['dtype']}")
    placed = item["device"].partition(":")[0] in (device, also)
    if not placed or item["layout"] != "strided" or "address" not in item:
        where = f"{item['layout']} on {item['device']}"
        return Mismatch("dtype", f"expected a strided tensor on {device}, got {where}")
    return None
