"""The device sheet: a few lines of plain text on the device of a run, for prompts.

It holds facts of `tilewright doctor` and measurements of evaluations. It holds no clock, no
temperature and no load, so that it is the same at every moment of a run.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path

from tilewright.config import LOCAL, Config
from tilewright.evaluator.devices.devices import Cores, Device, find_device, nvidia_smi, plan_cores
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.devices.stored_ceilings import read_ceilings
from tilewright.evaluator.devices.toolchain import installed_versions, processor, toolchain
from tilewright.evaluator.timing.calibration import read_calibration
from tilewright.executors.factory import device_model
from tilewright.records import Ceilings
from tilewright.scoring.occupancy import LIMITS
from tilewright.scoring.report_text import engineering

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
FEATURES = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512_bf16")
"""Flags of a processor that decide about the width of vectors."""
KIB = 1 << 10


REGISTERS = "65536 registers an SM, at most 255 a thread; 1024 threads a block; warps of 32"
"""The same for every capability of `occupancy.LIMITS`."""


def device_sheet(settings: Config) -> str:
    """Return at most 15 lines on the device that evaluates the candidates of these settings.

    Of the devices of a server or a cluster only the model is known here.
    """
    if settings.executor != LOCAL:
        return f"device: {device_model(settings, settings.eval.device)}\n"
    device = find_device(settings.eval.device)
    cores = plan_cores(sorted(os.sched_getaffinity(0)))
    if not device.is_gpu:
        lines = cpu_lines(device, cores)
    else:
        key = device_key(cores, device)
        lines = gpu_lines(device, read_ceilings(settings.home, key), memory_of(device))
    return "".join(f"{line}\n" for line in (*lines, *_shared_lines(settings.home, device, cores)))


def gpu_lines(device: Device, ceilings: Ceilings | None, memory_mib: int | None) -> list[str]:
    """Return the lines of a GPU: model, limits of its architecture, measured ceilings."""
    memory = "" if memory_mib is None else f", {memory_mib / KIB:.0f} GiB of memory"
    lines = [f"device: {device.model}{memory}, {device.arch}, driver {device.driver}"]
    limits = LIMITS.get(device.arch)
    if limits is not None:
        lines += [
            f"shared memory: {limits.shared_per_block_kib} KiB a block, "
            f"{limits.shared_per_multiprocessor_kib} KiB an SM",
            f"threads: {limits.threads_per_multiprocessor} an SM in at most "
            f"{limits.blocks_per_multiprocessor} blocks",
            f"registers: {REGISTERS}",
        ]
    lines += _ceiling_lines(ceilings)
    return [*lines, "timed calls: the L2 cache holds no inputs; launches are not in the time"]


def _ceiling_lines(ceilings: Ceilings | None) -> list[str]:
    if ceilings is None:
        return ["measured ceilings: none yet; the first evaluation on this device measures them"]
    bandwidth = ceilings.memory_bandwidth_bytes_per_s
    rates = {name: rate for name, rate in ceilings.flops_per_s.items() if rate > 0}
    products = ", ".join(f"{name} {engineering(rate, 'FLOP/s')}" for name, rate in rates.items())
    balance = ", ".join(f"{name} {rate / bandwidth:.0f}" for name, rate in rates.items())
    return [
        f"measured memory bandwidth: {engineering(bandwidth, 'B/s')}",
        f"measured rates of large matrix products: {products}",
        f"limited by memory below this many FLOP per byte: {balance}",
    ]


def cpu_lines(device: Device, cores: Cores) -> list[str]:
    """Return the lines of a CPU: model, cores, vector instructions, caches, compiler."""
    features = set(processor().split())
    known = [name for name in FEATURES if name in features]
    lines = [
        f"device: {device.model} ({platform.machine()})",
        f"cores: a timed call has {cores.threads} of {os.cpu_count()}, for as many threads",
        f"vector instructions: {', '.join(known) or 'unknown'}",
    ]
    if caches := caches_of(CACHES):
        lines.append(f"caches of the first core: {caches}")
    compiler = toolchain() or "none"
    return [
        *lines,
        f"compiler: {compiler}; a C ABI kernel is built with -O3 -march=native -fopenmp -std=c++17",
        "triton: its interpreter runs kernels here, so their times say nothing about a GPU",
        "measured ceilings: none; they are measured on GPUs alone",
    ]


def caches_of(folder: Path) -> str:
    """Return the data caches that the kernel lists in a folder; empty if it lists none."""
    found = []
    for index in sorted(folder.glob("index[0-9]*")):
        with suppress(OSError):
            level, kind, size, line = (
                (index / name).read_text(encoding="ascii").strip()
                for name in ("level", "type", "size", "coherency_line_size")
            )
            if kind != "Instruction":
                found.append(f"L{level} {size.replace('K', ' KiB')} (lines of {line} bytes)")
    return ", ".join(found)


def memory_of(device: Device) -> int | None:
    """Return the memory of a GPU in MiB, or `None` if the driver does not say."""
    rows = nvidia_smi("uuid", "memory.total")
    total = next((memory for uuid, memory in rows if uuid == device.uuid), "")
    return int(total) if total.isdecimal() else None


def _shared_lines(home: Path, device: Device, cores: Cores) -> list[str]:
    found = read_calibration(home, device_key(cores, device), on_gpu=device.is_gpu)
    kind = "measured" if found.measured else "assumed"
    sigmas = zip(found.sigmas, found.classes, strict=True)
    noise = ", ".join(f"{sigma:.2%} {name}" for sigma, name in sigmas)
    versions = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    return [f"{kind} variation between two processes: {noise}", f"versions: {versions}"]
