"""The theoretical occupancy of a kernel: how many of its warps fit a multiprocessor at once.

Source: NVIDIA, CUDA C++ Programming Guide, "Hardware Multithreading" and "Technical
Specifications". The achieved occupancy is lower where blocks are few or end at different times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.records import KernelShape

WARP = 32
"""Threads of a warp."""
REGISTERS_PER_MULTIPROCESSOR = 65536
"""32-bit registers of a multiprocessor, of every architecture in `LIMITS`."""
REGISTERS_PER_STEP = 256
"""A warp gets registers in steps of this many."""
SYSTEM_SHARED_BYTES = 1024
"""Shared memory that the driver reserves for itself in each block, from sm_80 on."""
SHARED_STEP_BYTES = 128
"""A block gets shared memory in steps of this many bytes."""


@dataclass(frozen=True)
class ArchitectureLimits:
    """Limits of a compute capability: CUDA C++ Programming Guide, "Technical Specifications"."""

    shared_per_block_kib: int
    """Most shared memory of a block, in KiB; more than 48 KiB needs the opt-in attribute."""
    shared_per_multiprocessor_kib: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int


LIMITS: Mapping[str, ArchitectureLimits] = {
    "sm_80": ArchitectureLimits(163, 164, 2048, 32),
    "sm_86": ArchitectureLimits(99, 100, 1536, 16),
    "sm_89": ArchitectureLimits(99, 100, 1536, 24),
    "sm_90": ArchitectureLimits(227, 228, 2048, 32),
    "sm_100": ArchitectureLimits(227, 228, 2048, 32),
}


@dataclass(frozen=True)
class Occupancy:
    """Resident warps of a multiprocessor as a share of the most possible, and their limit."""

    share: float
    limited_by: str
    """`registers`, `shared memory`, `threads` or `blocks`."""


def occupancy(shape: KernelShape, arch: str) -> Occupancy | None:
    """Return the theoretical occupancy of a kernel on `arch`, such as `sm_90`.

    `None` if the limits of the architecture are unknown, or if no block fits a multiprocessor.
    """
    limits = LIMITS.get(arch)
    if limits is None:
        return None
    warps = -(-shape.threads // WARP)
    fitting = {
        "threads": limits.threads_per_multiprocessor // (warps * WARP),
        "blocks": limits.blocks_per_multiprocessor,
    }
    if shape.registers:
        per_warp = _stepped(shape.registers * WARP, REGISTERS_PER_STEP)
        fitting["registers"] = REGISTERS_PER_MULTIPROCESSOR // per_warp // warps
    if shape.shared_bytes is not None:
        per_block = _stepped(shape.shared_bytes + SYSTEM_SHARED_BYTES, SHARED_STEP_BYTES)
        fitting["shared memory"] = limits.shared_per_multiprocessor_kib * 1024 // per_block
    limited_by = min(fitting, key=lambda name: fitting[name])
    resident = fitting[limited_by]
    if not resident:
        return None
    most = limits.threads_per_multiprocessor // WARP
    return Occupancy(resident * warps / most, limited_by)


def _stepped(amount: int, step: int) -> int:
    return -(-amount // step) * step
