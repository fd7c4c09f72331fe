"""Names that the supervisor, the judge and the runners share."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class IsolationLayer(StrEnum):
    """One part of the sandbox, with a self-test; a report lists each as active or not."""

    PID_NAMESPACE = "pid_namespace"
    NAMESPACES = "ipc_uts_cgroup_namespaces"
    NETWORK = "network"
    MOUNT_NAMESPACE = "mount_namespace"
    FILE_DESCRIPTORS = "file_descriptors"
    CPU_AFFINITY = "cpu_affinity"
    RLIMITS = "rlimits"
    ENVIRONMENT = "environment"
    SEPARATE_UID = "separate_uid"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
    PROCESS_CREATION_GUARD = "process_creation_guard"


class OutputMemory(StrEnum):
    """Memory in which an output may not lie, unless the reference's output does."""

    INPUT = "an input"
    OTHER_OUTPUT = "another output of the call"
    EARLIER_OUTPUT = "an output of an earlier call that the caller holds"
    SHARED = "shared memory"
    FILE = "a mapped file"
    UNMAPPED = "no memory"


ISOLATION_LAYERS: tuple[str, ...] = tuple(layer.value for layer in IsolationLayer)
"""Every isolation layer, in no order of strength."""
COPIED_INPUT = "copy of an input"
"""The answer without work that returns an argument as it was."""
NUMBERS = (bool, int, float)
"""Types of outputs that count as tensors without dimensions."""
PEAKED = "peaked_parts"
"""Uneven parts of timed calls, with a peak in half of them."""
HIGHEST_PEAK = "highest_peak"
"""The same with the highest peak, by which the judge finds out whether the reference accepts it."""
MOVED = "moved"
"""The variation for inputs that a test writes as literals: values in the same range, which differ
from them at random. Only problems that name it have it."""
INPUT_VARIATIONS = (
    "nominal",
    "scale",
    "scale_down",
    "above_half_range",
    "below_half_range",
    "sign",
    "offset",
    "heavy_tail",
    "small_integers",
    "edge_values",
    "uneven_parts",
)
"""Every way in which the judge varies an input sample; `nominal` is the problem's own sample.

A variation with a number, as `scale/4`, is a weaker one: the reference was not finite under the
stronger one.
"""
COMPILER_REMARKS = "compiler remarks"
"""Name of the build artifact that holds g++'s remarks about loops."""
WHOLE_HEADER_SOURCES = "whole header sources"
"""Name of the build artifact that lists CUDA sources which need all of `torch/extension.h`."""
COMPILED_BY_TRITON = "compiled by triton"
"""Name of the build artifact that holds Triton's cache, as the compile process left it."""


DEVICE_MEMORY_TEXTS = (
    *("CUDA error: out of memory", "Triton Error [CUDA]: out of memory", "_STATUS_ALLOC_FAILED"),
)
"""Parts of messages of errors of device memory for which torch, Triton and libraries have no
code."""
HOST_MEMORY_TEXT = "can't allocate"
"""The same for memory of the host, which torch allocates for tensors on a CPU."""
PRELOAD = "TILEWRIGHT_PRELOAD"
"""Variable with modules that the forkserver imports once for all its children."""


def allowed_variations(allowed: Iterable[str] | None) -> list[str]:
    """Return the input variations that a problem allows, without `nominal`; `None`: it says none.

    A problem that says nothing allows all but `MOVED`.
    """
    if allowed is None:
        return list(INPUT_VARIATIONS[1:])
    return [name for name in (*INPUT_VARIATIONS[1:], MOVED) if name in tuple(allowed)]


CLIENT_LEFT = "client_left"
"""Kind of the frame by which a supervisor tells its warm host that it is free again."""
