"""How kernels were compiled and launched, as Triton and torch's profiler report it.

The figures are self-reported and decide nothing. A figure that a release lacks is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

WARP = 32
"""Threads of a warp."""
REGISTER_BYTES = 4
TENSOR_CORE_INSTRUCTIONS = ("wgmma.", "mma.sync", "tcgen05.mma")
"""PTX instructions that multiply matrices on tensor cores."""
MAX_SHAPES = 16
"""Different shapes that are reported of one call."""


def shapes_of(launched: Iterable[tuple[Any, tuple[Any, ...]]]) -> list[dict[str, Any]]:
    """Return the shapes of Triton kernels, each once, from (kernel, first arguments) of launches.

    The first three arguments of a launch are the numbers of blocks along each axis.
    """
    found: list[dict[str, Any]] = []
    for kernel, grid in launched:
        shape = _triton_shape(kernel, grid)
        if shape is not None and shape not in found:
            found.append(shape)
    return found[:MAX_SHAPES]


def _triton_shape(kernel: Any, grid: tuple[Any, ...]) -> dict[str, Any] | None:  # noqa: ANN401
    metadata = getattr(kernel, "metadata", None)
    warps, blocks = _count(getattr(metadata, "num_warps", None)), _blocks(grid)
    if not warps or not blocks:
        return None
    spilled = _count(getattr(kernel, "n_spills", None))
    assembly = getattr(kernel, "asm", None)
    code = assembly.get("ptx") if isinstance(assembly, Mapping) else None
    return {
        "name": str(getattr(metadata, "name", "kernel")),
        "blocks": blocks,
        "threads": warps * WARP,
        "registers": _count(getattr(kernel, "n_regs", None)),
        "shared_bytes": _count(getattr(metadata, "shared", None)),
        "spilled_bytes": None if spilled is None else spilled * REGISTER_BYTES,
        "tensor_cores": _uses_tensor_cores(code) if isinstance(code, str) else None,
    }


def _uses_tensor_cores(code: str) -> bool:
    return any(item in code for item in TENSOR_CORE_INSTRUCTIONS)


def shapes_in_trace(path: Path) -> dict[str, dict[str, Any]]:
    """Return the shape of the first launch of each kernel in a trace of torch's profiler.

    `path` holds the trace that `export_chrome_trace` wrote. It reports no spilled registers.
    """
    document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    found: dict[str, dict[str, Any]] = {}
    for name, figures in _kernel_events(document):
        blocks, threads = _blocks(figures.get("grid", ())), _blocks(figures.get("block", ()))
        if name not in found and blocks and threads:
            found[name] = {
                "name": name,
                "blocks": blocks,
                "threads": threads,
                "registers": _count(figures.get("registers per thread")),
                "shared_bytes": _count(figures.get("shared memory")),
            }
    return found


def _kernel_events(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - JSON
    events = document.get("traceEvents") if isinstance(document, dict) else None
    for event in events or ():
        if event.get("cat") == "kernel" and isinstance(event.get("args"), dict):
            yield str(event.get("name")), event["args"]


def _blocks(axes: Iterable[Any]) -> int | None:
    """Return the product of sizes, or `None` if one of them is no positive integer."""
    counts = [_count(size) for size in axes]
    product = 1
    for count in counts:
        product *= count or 0
    return product if counts and product else None


def _count(value: Any) -> int | None:  # noqa: ANN401 - of another project
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
