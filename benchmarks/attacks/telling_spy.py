"""A candidate that notes what Python in the runner can read in a call, except its inputs' values.

`telling_calls` puts this text before the code of a candidate, whose function `watched` wraps. Each
call prints a line of JSON. A figure that cannot be read is 0.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

MARK = "seen:"
"""Start of each printed line."""
Readings = dict[str, float]
notes: dict[str, Any] = {"calls": 0, "ended": time.perf_counter()}
born = time.perf_counter()
libc = ctypes.CDLL(None)


def hook_harness() -> None:
    """Note when the harness receives a frame, prepares a call, and is released."""
    runner = sys.modules.get("tilewright.runner.host_memory")
    frames = sys.modules.get("tilewright.wire.frames")
    calls = sys.modules.get("tilewright.runner.calls")
    if runner is None or frames is None or calls is None:
        return
    noted(frames.Channel, "receive", "receives", "received")
    noted(calls, "prepare", "prepares", "prepared")
    noted(runner, "await_release", "ready", "released")


def noted(owner: Any, name: str, before: str, after: str) -> None:  # noqa: ANN401
    """Let a function of the harness note when it begins and ends."""
    function = getattr(owner, name)

    def timed(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
        notes[before], notes[before + "_cpu"] = time.perf_counter(), time.thread_time()
        made = function(*args, **keywords)
        notes[after], notes[after + "_cpu"] = time.perf_counter(), time.thread_time()
        return made

    setattr(owner, name, timed)


def number(text: Any) -> float:  # noqa: ANN401
    """Return a small number that tells texts apart."""
    return float(zlib.crc32(str(text).encode()) % 9973)


def words(path: str) -> list[str]:
    """Return the words of a file of /proc; none if it cannot be read."""
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def listed(path: str) -> int:
    try:
        return len(os.listdir(path))
    except OSError:
        return 0


def of_interpreter() -> Readings:
    """Return the state of the interpreter, its collector, and its stack."""
    counts, frame, names = gc.get_count(), sys._getframe(1), []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return {
        "gc on": gc.isenabled(),
        **{f"gc count {place}": count for place, count in enumerate(counts)},
        "gc runs": sum(item["collections"] for item in gc.get_stats()),
        "stack depth": len(names),
        "stack names": number(names),
        "threads": threading.active_count(),
        "id of object": id(object()) % (1 << 20),
        "id of list": id([]) % (1 << 20),
        "blocks": sys.getallocatedblocks(),
        "modules": len(sys.modules),
        "recursion limit": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
    }


def of_harness() -> Readings:
    """Return what frames of the harness and its objects hold."""
    frame, found, fields = sys._getframe(1), dict[str, Any](), dict[str, Any]()
    while frame is not None:
        held = frame.f_locals
        if isinstance(held.get("fields"), dict) and not fields:
            fields = held["fields"]
        if not found and hasattr(held.get("self"), "HANDLERS"):
            found = vars(held["self"])
        frame = frame.f_back  # type: ignore[assignment]
    page = getattr(found.get("memory"), "page", None)
    held = fields.get("held") or [0]
    return {
        "sequence": fields.get("sequence", -1),
        "base": fields.get("base", 0),
        "bytes": fields.get("size", 0),
        "wait_s": fields.get("wait_s", 0),
        "forward seed": fields.get("forward_seed", 0),
        "seed parity": fields.get("forward_seed", 0) % 2,
        "seed digits": len(str(fields.get("forward_seed", 0))),
        "fields": number(sorted(fields)),
        "message bytes": len(json.dumps(fields)),
        "held": len(held),
        "oldest held": fields.get("sequence", 0) - min(held),
        "newest held": fields.get("sequence", 0) - max(held),
        "outputs kept": len(found.get("held", ())),
        "kept": len(found.get("kept", ())),
        "launches": getattr(found.get("launches"), "count", 0),
        "flag go": 0 if page is None else page[0] - fields.get("sequence", 0),
        "flag ready": 0 if page is None else page[8] - fields.get("sequence", 0),
        "flag done": 0 if page is None else page[16] - fields.get("sequence", 0),
        "output address": 0 if page is None else page[64] % (1 << 24),
    }


def of_clocks() -> Readings:
    """Return times since earlier moments, in microseconds, and the processor's state."""
    now, cpu = time.perf_counter(), time.thread_time()
    start = time.perf_counter()
    sum(range(300))
    spun = time.perf_counter() - start

    def since(first: str, last: str = "") -> float:
        end = notes.get(last, now) if last else now
        return float(end - notes.get(first, now)) * 1e6

    return {
        "call": notes["calls"],
        "since call us": since("ended"),
        "since received us": since("received"),
        "since prepared us": since("prepared"),
        "since released us": since("released"),
        "waited for frame us": since("receives", "received"),
        "prepared in us": since("prepares", "prepared"),
        "waited for release us": since("ready", "released"),
        "release cpu us": (notes.get("released_cpu", 0) - notes.get("ready_cpu", 0)) * 1e6,
        "gap us": since("ended", "prepares"),
        "call to ready us": since("ended", "ready"),
        "age us": (now - born) * 1e6,
        "cpu us": time.process_time() * 1e6,
        "thread cpu us": cpu * 1e6,
        "loop us": spun * 1e6,
        "core": libc.sched_getcpu(),
    }


def of_kernel() -> Readings:
    """Return figures of /proc: memory, faults, switches and load."""
    status = dict(pairwise(words("/proc/self/status")))
    stat, machine = words("/proc/self/stat"), dict(pairwise(words("/proc/meminfo")))
    names = ["VmRSS:", "VmSize:", "VmData:", "VmPTE:", "RssAnon:", "Threads:"]
    names += ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]
    found = {name: value_of(status.get(name)) for name in names}
    found |= {
        name: value_of(machine.get(name)) for name in ("MemFree:", "MemAvailable:", "Cached:")
    }
    places = {"minor faults": 9, "major faults": 11, "utime": 13, "stime": 14, "processor": 38}
    found |= {name: value_of((stat[at : at + 1] or ["0"])[0]) for name, at in places.items()}
    sched = [*words("/proc/self/schedstat"), "0", "0", "0"]
    found |= {f"schedstat {place}": value_of(sched[place]) for place in range(3)}
    load = [*words("/proc/loadavg"), "0", "0", "0", "0/0"]
    found |= {"load": value_of(load[0]), "running": value_of(load[3].split("/")[0])}
    machine_stat = words("/proc/stat")
    for name in ("ctxt", "intr", "procs_running", "softirq"):
        at = machine_stat.index(name) + 1 if name in machine_stat else 0
        found[f"machine {name}"] = value_of(machine_stat[at]) if at else 0.0
    found["wchan"] = number(words("/proc/self/wchan"))
    found["descriptors"] = listed("/proc/self/fd")
    found["tasks"] = listed("/proc/self/task")
    found["files"] = listed("/tmp")
    return found


def value_of(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return number(text)


def of_torch() -> Readings:
    """Return flags of torch, its generator, and free memory of a device."""
    found: Readings = {
        "initial seed": torch.initial_seed(),
        "generator": zlib.adler32(torch.get_rng_state().numpy().tobytes()),
        "threads of torch": torch.get_num_threads(),
        "precision": number(torch.get_float32_matmul_precision()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "dtype": number(torch.get_default_dtype()),
        "mkldnn": bool(torch.backends.mkldnn.enabled),
        "new tensor": torch.empty(64).data_ptr() % (1 << 24),
        "new block": torch.empty(1 << 16).data_ptr() % (1 << 24),
    }
    if torch.cuda.is_available():
        stream = torch.cuda.current_stream()
        free, _ = torch.cuda.mem_get_info()
        found |= {
            "stream idle": stream.query(),
            "stream": stream.cuda_stream % (1 << 20),
            "free": free,
            "allocated": torch.cuda.memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
        }
    return found


def of_inputs(values: tuple[Any, ...]) -> Readings:
    """Return where inputs lie, and how fast their memory answers: nothing of their values."""
    first = next(value for value in values if isinstance(value, torch.Tensor))
    address = first.data_ptr()
    found: Readings = {
        "page offset": address % 4096,
        "address": address % (1 << 26),
        "version": first._version,
        "references": sys.getrefcount(first),
        "id of input": id(first) % (1 << 20),
        "strides": number([value.stride() for value in values if isinstance(value, torch.Tensor)]),
        "storage": first.untyped_storage().nbytes(),
        "alignment": (address & -address) % (1 << 20),
    }
    if first.device.type == "cpu":
        start = time.perf_counter()
        first.view(-1).view(torch.uint8).sum()
        found["read us"] = (time.perf_counter() - start) * 1e6
        try:
            with open("/proc/self/pagemap", "rb") as table:
                table.seek(address // 4096 * 8)
                entry = int.from_bytes(table.read(8), "little")
            found |= {"page bits": entry >> 55, "page frame": entry % (1 << 20)}
        except OSError:
            found |= {"page bits": 0, "page frame": 0}
    return found


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that prints what can be read in each call, then computes."""
    hook_harness()

    def work(*values: Any) -> Any:  # noqa: ANN401
        notes["calls"] += 1
        found = of_clocks() | of_inputs(values) | of_interpreter() | of_harness()
        found |= of_kernel() | of_torch()
        print(MARK + json.dumps({name: float(value) for name, value in found.items()}), flush=True)
        output = function(*values)
        notes["ended"] = time.perf_counter()
        return output

    return work
