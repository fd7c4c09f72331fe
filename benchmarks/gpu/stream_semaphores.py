"""Experiment on a GPU: streams of two processes that wait for semaphores in shared memory.

Questions: does it work when the runner enters its sandbox before CUDA starts? How exact is the
judge's interval? Does the runner's pool keep autograd and captured graphs inside the judge's block?
Run on the device machine: `python3 -m benchmarks.gpu.stream_semaphores`. JSON goes to `$OUT`.
"""
# ruff: noqa: ANN401 - torch is imported late, and passed around as a value

from __future__ import annotations

import ctypes
import glob
import json
import mmap
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import torch

from benchmarks.gpu.clock_experiment import cycles_per_us
from tilewright.runner.sandbox.isolation import fork_confined
from tilewright.runner.sandbox.policy import Confinement
from tilewright.wire.cuda_driver import Block, Driver

SOURCE = Path(__file__).parents[2] / "src" / "tilewright" / "runner" / "native" / "pool.cpp"
BLOCK = 512 << 20
POOL_AT = 64 << 20
GATE, DONE = 0, 256
KERNELS_US = (5, 10, 20, 50, 100, 500, 2000)
REPEATS = 150


def confinement(keep: tuple[int, ...], extra: tuple[str, ...]) -> Confinement:
    view: tuple[str, ...] = (
        "/usr",
        "/lib",
        "/lib64",
        "/bin",
        "/sbin",
        "/etc/ld.so.cache",
        "/opt",
        "/tmp/site",
    )
    view += (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), *extra)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/tmp",
        "USER": "candidate",
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
    }
    return Confinement(
        read_only=tuple(dict.fromkeys(path for path in view if os.path.exists(path))),
        writable_tmp_bytes=512 << 20,
        uid=61_500,
        memory_bytes=64 << 30,
        file_bytes=1 << 30,
        processes=256,
        descriptors=256,
        core=tuple(sorted(os.sched_getaffinity(0)))[:4],
        environment=environment,
        keep_fds=keep,
        devices=tuple(glob.glob("/dev/nvidia*[0-9l]") + glob.glob("/dev/nvidia-uvm*")),
    )


def say(link: socket.socket, value: Any) -> None:
    link.sendall(json.dumps(value).encode() + b"\n")


def hear(link: socket.socket) -> Any:
    text = b""
    while not text.endswith(b"\n"):
        piece = link.recv(65536)
        if not piece:
            raise EOFError
        text += piece
    return json.loads(text)


class DeviceHost:
    """A page of host memory that both processes have registered with their devices."""

    def __init__(self, driver: Driver, fd: int) -> None:
        self.map = mmap.mmap(fd, 4096)
        pointer = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        driver.call("cuMemHostRegister_v2", ctypes.c_void_p(pointer), ctypes.c_size_t(4096), 2)
        device = ctypes.c_uint64()
        driver.call(
            "cuMemHostGetDevicePointer_v2", ctypes.byref(device), ctypes.c_void_p(pointer), 0
        )
        self.address = int(device.value)


def runner(link: socket.socket, fd: int, library: str, applied: dict[str, str]) -> None:
    told = hear(link)
    driver = Driver()
    block = driver.open(told["handle"], BLOCK)
    answer: dict[str, Any] = {"applied": applied}
    semaphores = {"device": block.address}
    try:
        semaphores["host"] = DeviceHost(driver, fd).address
    except Exception as error:  # noqa: BLE001 - an experiment
        answer["host semaphores"] = str(error)
    rate = cycles_per_us(torch)
    say(link, answer)
    while True:
        asked = hear(link)
        if asked["do"] == "pool":
            break
        base, sequence = semaphores[asked["semaphores"]], asked["sequence"]
        stream = torch.cuda.current_stream()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        driver.await_semaphore(stream.cuda_stream, base + GATE, sequence)
        begin.record(stream)
        torch.cuda._sleep(int(asked["us"] * rate))
        end.record(stream)
        driver.write_semaphore(stream.cuda_stream, base + DONE, sequence)
        say(link, {})
        end.synchronize()
        say(link, {"us": begin.elapsed_time(end) * 1e3})
    later = driver.open(asked["handle"], 64 << 20)
    value = later.elements(torch.float32, 1024, 0)
    said: dict[str, Any] = {"second block": float(value.sum())}
    try:
        said |= pooled(block, library)
    except Exception as error:  # noqa: BLE001 - an experiment
        said["pool"] = f"{type(error).__name__}: {error}"[:500]
    say(link, said)


def pooled(block: Block, library: str) -> dict[str, Any]:  # noqa: PLR0915 - an experiment
    """Route all allocations of a call, autograd's and a graph's too, into the block."""
    own = ctypes.CDLL(library)
    own.tw_pool_open(ctypes.c_uint64(block.address + POOL_AT), ctypes.c_uint64(BLOCK - POOL_AT))
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        library, "tw_pool_allocate", "tw_pool_release"
    ).allocator()
    pool, graphs = torch.cuda.MemPool(allocator), torch.cuda.MemPool(allocator)

    def worst_ratio(value: torch.Tensor) -> bool:
        return block.address + POOL_AT <= value.data_ptr() < block.address + BLOCK

    def begin() -> None:
        torch._C._cuda_beginAllocateToPool(0, pool.id)

    def end() -> None:
        torch._C._cuda_endAllocateToPool(0, pool.id)
        torch._C._cuda_releasePool(0, pool.id)

    found: dict[str, Any] = {}
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    begin()
    y = (x @ x).relu()
    (gradient,) = torch.autograd.grad(y.sum(), x)
    end()
    found["forward inside"], found["gradient inside"] = worst_ratio(y), worst_ratio(gradient)
    graph, own_pool = torch.cuda.CUDAGraph(), cast(Any, graphs.id)
    z = torch.randn(1 << 20, device="cuda")
    runner = torch.cuda.Stream()
    begin()
    with torch.cuda.stream(runner):
        w = z * 2
    runner.synchronize()
    end()
    torch.cuda.empty_cache()
    with torch.cuda.graph(graph, pool=own_pool):
        out = z * 3 + 1
    begin()
    for _ in range(20):
        torch.randn(1 << 20, device="cuda")
    graph.replay()
    torch.cuda.synchronize()
    end()
    found["graph inside"], found["side stream inside"] = worst_ratio(out), worst_ratio(w)
    found["graph right"] = bool(torch.equal(out, z * 3 + 1))
    start = time.perf_counter()
    for _ in range(1000):
        begin()
        end()
    found["begin and end us"] = (time.perf_counter() - start) * 1e3
    begin()
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    end()
    torch.cuda.empty_cache()
    return found


def judge(link: socket.socket, fd: int, out: dict[str, Any]) -> None:
    driver = Driver()
    block = driver.allocate(BLOCK)
    block.elements(torch.int32, 1024, 0).zero_()
    torch.cuda.synchronize()
    host = DeviceHost(driver, fd)
    say(link, {"handle": driver.export(block)})
    out["runner"] = hear(link)
    flag = torch.zeros(1, dtype=torch.int32).pin_memory()
    stream = torch.cuda.Stream()
    sequence = 0
    for semaphores, base in (("device", block.address), ("host", host.address)):
        if semaphores == "host" and "host semaphores" in out["runner"]:
            continue
        rows = []
        for wanted in KERNELS_US:
            samples = []
            for _ in range(REPEATS):
                sequence += 1
                samples.append(one(driver, link, stream, flag, semaphores, base, wanted, sequence))
            rows.append(summary(wanted, samples[20:]))
        out[semaphores] = rows
    later = driver.allocate(64 << 20)
    later.elements(torch.float32, 1024, 0).fill_(1.0)
    torch.cuda.synchronize()
    say(link, {"do": "pool", "handle": driver.export(later)})
    out["pool"] = hear(link)


def one(
    driver: Driver, link: socket.socket, stream: Any, flag: Any, semaphores: str, base: int,
    wanted: int, sequence: int,
) -> tuple[float, float]:  # fmt: skip
    flag[0] = 0
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    driver.await_semaphore(stream.cuda_stream, flag.data_ptr(), 1)
    begin.record(stream)
    driver.write_semaphore(stream.cuda_stream, base + GATE, sequence)
    driver.await_semaphore(stream.cuda_stream, base + DONE, sequence)
    end.record(stream)
    say(link, {"do": "kernel", "semaphores": semaphores, "us": wanted, "sequence": sequence})
    hear(link)
    flag[0] = 1
    end.synchronize()
    return begin.elapsed_time(end) * 1e3, hear(link)["us"]


def summary(wanted: int, samples: list[tuple[float, float]]) -> dict[str, float]:
    extra = sorted(mine - said for mine, said in samples)
    middle = statistics.median(extra)
    return {
        "kernel": wanted,
        "said": statistics.median(said for _, said in samples),
        "judge": statistics.median(mine for mine, _ in samples),
        "extra": middle,
        "mad": statistics.median(abs(value - middle) for value in extra),
        "p5": extra[len(extra) // 20],
        "p95": extra[-len(extra) // 20],
    }


def main() -> None:
    library = f"{tempfile.mkdtemp()}/pool.so"
    os.chmod(os.path.dirname(library), 0o755)
    subprocess.run(
        ["g++", "-O2", "-shared", "-fPIC", "-std=c++17", str(SOURCE), "-o", library, "-ldl"],
        check=True,
    )
    ours, theirs = socket.socketpair()
    fd = os.memfd_create("semaphores")
    os.ftruncate(fd, 4096)
    wanted = confinement((theirs.fileno(), fd, 1, 2), (library,))

    def play(applied: dict[str, str]) -> int:
        runner(theirs, fd, library, applied)
        return 0

    fork_confined(wanted, play)
    theirs.close()
    out: dict[str, Any] = {}
    start = time.monotonic()
    try:
        judge(ours, fd, out)
    finally:
        out["wall_s"] = time.monotonic() - start
        Path(os.environ.get("OUT", ".")).joinpath("gpu_semaphores.json").write_text(json.dumps(out))
        for key, rows in out.items():
            print(key, rows if not isinstance(rows, list) else "")
            for row in rows if isinstance(rows, list) else ():
                print("  " + " ".join(f"{name} {value:8.2f}" for name, value in row.items()))


if __name__ == "__main__":
    main()
