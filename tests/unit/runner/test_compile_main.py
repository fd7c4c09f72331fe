"""Precompilation: Triton kernels are compiled for a GPU that this machine does not have."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tilewright.wire.frames import Channel, Frame
from tilewright.wire.names import COMPILED_BY_TRITON

pytest.importorskip("triton")

CHILD = """
import socket, sys
from tilewright.runner import compile_main as ahead, main as serve
ahead.CACHE, serve.ROOT = sys.argv[2], sys.argv[3]
ahead.main(socket.socket(fileno=int(sys.argv[1])), {})
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (2, 4)], key=["n"])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def work(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
MODULE = KERNEL.replace(
    "def work(x):",
    """class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return work(x * self.weight)


def work(x):""",
)
X = {"t": "tensor", "dtype": "float32", "shape": [64, 64], "stride": [64, 1], "offset": 256}
NOTHING = {"t": "list", "v": []}

PROGRESS = ("imported", "compiling", "compiled")


def compiled(folder: Path, text: str, entry: str = "work", **changes: object) -> Frame:
    """Return the compiler's answer about one candidate."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", CHILD, str(theirs.fileno())]
    command += [str(folder / "cache"), str(folder / "root")]
    # The other tests interpret.
    given = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    given["TRITON_CACHE_DIR"] = str(folder / "cache")
    with subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=given) as child:
        theirs.close()
        channel = Channel(ours)
        limit = time.monotonic() + 60
        assert channel.receive(limit).kind == "ready"
        fields = {
            "files": [{"path": "candidate.py", "size": len(text)}],
            "entry": entry,
            "arch": 90,
            "init": NOTHING,
            "calls": [{"args": {"t": "list", "v": [X]}, "grads": [], "grad_outputs": NOTHING}],
            "import_paths": [],
            **changes,
        }
        channel.send("build", fields, text.encode())
        assert channel.receive(limit).kind == "entering"
        # Frames that tell which limit applies come before the answer.
        while (answer := channel.receive(limit)).kind in PROGRESS:
            continue
        channel.close()
        child.wait(10)
    return answer


def names(answer: Frame) -> list[str]:
    """Return the files of an archive."""
    assert answer.fields["artifacts"] == {COMPILED_BY_TRITON: len(answer.body)}
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        return archive.getnames()


def test_every_configuration_is_compiled_without_a_device(tmp_path):
    found = names(compiled(tmp_path, KERNEL))
    assert sum(name.endswith("double.cubin") for name in found) == 2


def test_a_module_is_built_and_called_too(tmp_path):
    size = {"t": "list", "v": [{"t": "value", "v": 64}]}
    found = names(compiled(tmp_path, MODULE, "ModelNew", init=size))
    assert any(name.endswith("double.cubin") for name in found)


def test_a_candidate_may_choose_the_device_and_ask_for_its_properties(tmp_path):
    text = KERNEL.replace(
        "    double[",
        "    count = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
        "    assert count and torch.cuda.device_count() == 1\n"
        "    with torch.cuda.device(x.device):\n        double[",
    )
    found = names(compiled(tmp_path, text))
    assert sum(name.endswith("double.cubin") for name in found) == 2


@pytest.mark.parametrize(
    "text",
    [
        "raise RuntimeError('not today')\n",
        "import torch\n\n\ndef work(x):\n    return x if x.sum().item() else None\n",
    ],
)
def test_kernels_that_need_values_are_not_precompiled(tmp_path, text):
    answer = compiled(tmp_path, text)
    assert answer.kind == "built"
    assert answer.fields["artifacts"] == {}


def test_a_candidate_that_exits_while_precompiling_is_an_error(tmp_path):
    answer = compiled(tmp_path, "import sys\nsys.exit(3)\n")
    assert (answer.kind, answer.fields["type"]) == ("error", "SystemExit")
