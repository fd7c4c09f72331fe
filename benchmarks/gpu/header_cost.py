"""Seconds to build one CUDA extension, with and without the short header.

`python -m benchmarks.gpu.header_cost` runs both builds at the same time, and prints the seconds of
each step from ninja's log: nvcc, the host compiler, and the linker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tilewright.runner.loaders import short_headers

PROGRAM = '''
import sys
from torch.utils.cpp_extension import CUDA_HOME, load_inline
from tilewright.runner.loaders import short_headers
kind, folder = sys.argv[1:]
if kind != "whole":
    short_headers.install(folder, f"{CUDA_HOME}/bin/nvcc")
INCLUDE = "#include <torch/types.h>" if kind == "types" else "#include <torch/extension.h>"
KERNEL = INCLUDE + """
#include <cuda_runtime.h>
__global__ void twice(const float* x, float* y, long count) {
    for (long at = blockIdx.x * 256L + threadIdx.x; at < count; at += gridDim.x * 256L)
        y[at] = 2.0f * x[at];
}
torch::Tensor work(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "on a GPU only");
    auto y = torch::empty_like(x);
    twice<<<128, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
own = load_inline(
    "own", cpp_sources="torch::Tensor work(torch::Tensor x);", cuda_sources=KERNEL,
    functions=["work"], build_directory=folder,
)
import torch
x = torch.randn(1000, device="cuda")
assert torch.equal(own.work(x), 2 * x)
'''


def main() -> None:
    """Build both at once, and print their steps."""
    capability = subprocess.run(
        ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[0]
    environment = {**os.environ, "TORCH_CUDA_ARCH_LIST": capability}
    begun, running = time.monotonic(), {}
    for kind in ("whole", "short"):
        folder = Path(tempfile.mkdtemp())
        command = [sys.executable, "-c", PROGRAM, kind, str(folder)]
        running[kind] = (folder, subprocess.Popen(command, env=environment))
    for kind, (folder, process) in running.items():
        status = process.wait()
        print(f"{kind}: exit status {status}, {time.monotonic() - begun:.1f} s since the start")
        for line in (folder / ".ninja_log").read_text(encoding="utf-8").splitlines()[1:]:
            start, end, _, output, *_ = line.split("\t")
            print(f"    {output:20} {(int(end) - int(start)) / 1000:.1f} s")
        print(f"    with the whole header: {short_headers.whole_header_sources(str(folder))}")


if __name__ == "__main__":
    main()
