"""Whether a runner's description of an output fits what is expected: kind, shape, dtype, device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.evaluator.judge.comparison import Expected, Mismatch
from tilewright.wire.tensors import dtype_name


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
