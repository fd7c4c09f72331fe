"""Run a Python file as `python FILE` does, with the CPU for each CUDA device that it names.

Triton interprets its kernels if TRITON_INTERPRET is 1.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tilewright.evaluator.judge.cuda_on_cpu import CudaOnCpu, redirected
from tilewright.runner.launch_counter import install_driver_stub

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    install_driver_stub(80, "cpu")
    with redirected(CudaOnCpu()):
        runpy.run_path(sys.argv[0], run_name="__main__")
