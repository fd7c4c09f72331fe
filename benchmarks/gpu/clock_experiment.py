"""Experiments on a GPU that precede an implementation; results belong in `docs/lab/`.

1. The judge's device clock: the interval between its two timing events around a runner's work in
   another process and context, against the runner's own events.
2. Outputs in place: does the runner's caching allocator work inside a block that the judge owns and
   shares over CUDA IPC, so that the judge can read outputs without a copy?

Run on the device machine: `python3 -m benchmarks.gpu.clock_experiment`. It prints a table, and
writes JSON to `$OUT`.
"""
# ruff: noqa: ANN401 - torch is imported late, and passed around as a value

from __future__ import annotations

import ctypes
import json
import os
import socket
import statistics
import subprocess
import tempfile
import time
from typing import Any

BLOCK = 1 << 30
HALF = BLOCK // 2
KERNELS_US = (0, 10, 20, 50, 100, 500, 2000)
REPEATS = 200
ALLOCATOR = r"""
#include <cstddef>
#include <cuda_runtime_api.h>
static char* base = nullptr;
static size_t used = 0, room = 0;
extern "C" void lab_set(void* at, size_t size) { base = (char*)at; room = size; used = 0; }
extern "C" size_t lab_used() { return used; }
extern "C" void* lab_alloc(ptrdiff_t size, int device, cudaStream_t stream) {
    size_t rounded = ((size_t)size + 511) / 512 * 512;
    if (used + rounded > room) return nullptr;
    void* found = base + used;
    used += rounded;
    return found;
}
extern "C" void lab_free(void* ptr, ptrdiff_t size, int device, cudaStream_t stream) {}
"""


class Runtime:
    """The few calls of the CUDA runtime and driver that torch does not offer."""

    def __init__(self) -> None:
        import torch

        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.torch = torch
        major = (torch.version.cuda or "13").partition(".")[0]
        self.lib = ctypes.CDLL(f"libcudart.so.{major}")
        self.driver = ctypes.CDLL("libcuda.so.1")

    def check(self, code: int) -> None:
        if code:
            raise RuntimeError(f"CUDA error {code}")

    def malloc(self, size: int) -> int:
        pointer = ctypes.c_void_p()
        self.check(self.lib.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
        return int(pointer.value or 0)

    def export(self, pointer: int) -> bytes:
        handle = (ctypes.c_char * 64)()
        self.check(self.lib.cudaIpcGetMemHandle(handle, ctypes.c_void_p(pointer)))
        return bytes(handle)

    def open(self, handle: bytes) -> int:
        class Handle(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_char * 64)]

        value, pointer = Handle.from_buffer_copy(handle), ctypes.c_void_p()
        self.lib.cudaIpcOpenMemHandle.argtypes = [ctypes.c_void_p, Handle, ctypes.c_uint]
        self.check(self.lib.cudaIpcOpenMemHandle(ctypes.byref(pointer), value, 1))
        return int(pointer.value or 0)


def judge(link: socket.socket, out: dict[str, Any]) -> None:
    """Own the block and the events; time the runner's work."""
    cuda = Runtime()
    torch = cuda.torch
    block = cuda.malloc(BLOCK)
    gate = torch.cuda.Event(interprocess=True)
    done = torch.cuda.Event(interprocess=True)
    link.sendall(cuda.export(block) + gate.ipc_handle() + done.ipc_handle())
    assert link.recv(1) == b"r"
    flag = torch.zeros(1, dtype=torch.int32).pin_memory()
    stream = torch.cuda.Stream()
    rows = []
    for wanted in KERNELS_US:
        samples = [one(cuda, link, stream, gate, done, flag, wanted) for _ in range(REPEATS + 20)]
        rows.append((wanted, samples[20:]))
    out["clock"] = [summary(wanted, samples) for wanted, samples in rows]
    link.sendall(b"a")
    size = int.from_bytes(link.recv(8), "little")
    offset = int.from_bytes(link.recv(8), "little")

    view = type("View", (), {"__cuda_array_interface__": described(block + offset, size)})
    seen = torch.as_tensor(view(), device="cuda")
    out["pool"] = {"offset": offset, "right": bool((seen == 7.5).all())}
    link.sendall(b"q")


def described(pointer: int, size: int) -> dict[str, Any]:
    """Return the array interface of float32 elements at a device address."""
    return {"shape": (size,), "typestr": "<f4", "data": (pointer, False), "version": 3}


def one(
    cuda: Runtime, link: socket.socket, stream: Any, gate: Any, done: Any, flag: Any, wanted: int
) -> tuple[float, float]:
    """Return microseconds of one gated call: by the judge's events, by the runner's."""
    torch = cuda.torch
    flag[0] = 0
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        pointer = ctypes.c_uint64(flag.data_ptr())
        code = cuda.driver.cuStreamWaitValue32_v2(
            ctypes.c_void_p(stream.cuda_stream), pointer, ctypes.c_uint32(1), ctypes.c_uint(0)
        )
        cuda.check(code)
        begin.record(stream)
        gate.record(stream)
    link.sendall(b"k" + wanted.to_bytes(4, "little"))
    assert link.recv(1) == b"k"
    stream.wait_event(done)
    end.record(stream)
    flag[0] = 1
    end.synchronize()
    (said,) = memoryview(link.recv(8)).cast("d")
    return begin.elapsed_time(end) * 1e3, said * 1e3


def runner(link: socket.socket) -> None:
    """Open what the judge shares and answer its calls."""
    cuda = Runtime()
    torch = cuda.torch
    handles = b""
    while len(handles) < 192:
        handles += link.recv(192 - len(handles))
    block = cuda.open(handles[:64])
    gate = torch.cuda.Event.from_ipc_handle(torch.device("cuda:0"), handles[64:128])
    done = torch.cuda.Event.from_ipc_handle(torch.device("cuda:0"), handles[128:192])
    stream = torch.cuda.Stream()
    rate = cycles_per_us(torch)
    link.sendall(b"r")
    while True:
        kind = link.recv(1)
        if kind == b"a":
            break
        wanted = int.from_bytes(link.recv(4), "little")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            stream.wait_event(gate)
            begin.record(stream)
            if wanted:
                torch.cuda._sleep(int(wanted * rate))
            end.record(stream)
            done.record(stream)
        link.sendall(b"k")
        end.synchronize()
        link.sendall(bytes(memoryview((ctypes.c_double * 1)(begin.elapsed_time(end)))))
    offset, size = allocate_inside(torch, block)
    link.sendall(size.to_bytes(8, "little") + offset.to_bytes(8, "little"))
    link.recv(1)


def cycles_per_us(torch: Any) -> float:
    """Return the rate of `torch.cuda._sleep`."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1000)
    begin.record()
    torch.cuda._sleep(10_000_000)
    end.record()
    end.synchronize()
    return 10_000_000 / (float(begin.elapsed_time(end)) * 1e3)


def allocate_inside(torch: Any, block: int) -> tuple[int, int]:
    """Allocate a tensor through torch inside the judge's block; return offset and elements."""
    folder = tempfile.mkdtemp()
    source, library = f"{folder}/lab.cpp", f"{folder}/lab.so"
    with open(source, "w", encoding="ascii") as file:
        file.write(ALLOCATOR)
    include = "/usr/local/cuda/include"
    command = ["g++", "-shared", "-fPIC", "-O2", f"-I{include}", source, "-o", library]
    subprocess.run(command, check=True)
    own = ctypes.CDLL(library)
    own.lab_set(ctypes.c_void_p(block + HALF), ctypes.c_size_t(HALF))
    allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "lab_alloc", "lab_free")
    pool = torch.cuda.MemPool(allocator.allocator())
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((1 << 20,), 7.5, device="cuda")
        y = x * 1.0
        del x
        z = torch.full((1 << 20,), 7.5, device="cuda")
    torch.cuda.synchronize()
    assert z.data_ptr() != y.data_ptr()
    return z.data_ptr() - block, z.numel()


def summary(wanted: int, samples: list[tuple[float, float]]) -> dict[str, float]:
    """Return medians and scatter of one kernel length."""
    theirs = [said for _, said in samples]
    judged = [mine for mine, _ in samples]
    extra = [mine - said for mine, said in samples]
    middle = statistics.median(extra)
    return {
        "kernel_us": wanted,
        "contestant_us": statistics.median(theirs),
        "judge_us": statistics.median(judged),
        "extra_us": middle,
        "extra_mad_us": statistics.median(abs(value - middle) for value in extra),
        "extra_p5_us": sorted(extra)[len(extra) // 20],
        "extra_p95_us": sorted(extra)[-len(extra) // 20],
    }


def main() -> None:
    """Run judge and runner as two processes forked before CUDA is touched."""
    import torch  # noqa: F401 - imported once, before the forks, as the forkserver does

    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        runner(theirs)
        os._exit(0)
    theirs.close()
    out: dict[str, Any] = {}
    start = time.monotonic()
    try:
        judge(ours, out)
    finally:
        out["wall_s"] = time.monotonic() - start
        folder = os.environ.get("OUT")
        if folder:
            with open(f"{folder}/gpu_lab.json", "w", encoding="utf-8") as file:
                json.dump(out, file, indent=1)
        for row in out.get("clock", []):
            print(" ".join(f"{key} {value:9.2f}" for key, value in row.items()))
        print(out.get("pool"), f"{out['wall_s']:.1f} s")
        os.waitpid(pid, os.WNOHANG)


if __name__ == "__main__":
    main()
