"""The compile process: it compiles a candidate's Triton kernels in the sandbox without a device.

It calls the candidate on torch's fake tensors, which have a shape and no values, and compiles each
launch instead of making it. A candidate that reads values cannot run like that; the runner
compiles its kernels at their first launch. The answer is Triton's cache, untrusted like the source.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import tarfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

# Imported in the forkserver: each child that makes a fake tensor would import these again.
import torch
import torch._dynamo
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tilewright.runner import calls
from tilewright.runner.build_main import answer_once
from tilewright.runner.launch_counter import CACHE, install_driver_stub
from tilewright.runner.loaders import python
from tilewright.runner.main import write_files
from tilewright.wire.cuda_driver import Block
from tilewright.wire.frames import MAX_BODY_BYTES, Channel, Frame
from tilewright.wire.names import COMPILED_BY_TRITON
from tilewright.wire.tensors import build

MULTIPROCESSORS = 132
"""The number of multiprocessors that a candidate sees: an H100's. It decides about grids, which
are not compiled."""
UNLIMITED_BYTES = 1 << 62
"""Size of a fake block: more than any tensor of a call."""


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Compile for the calls of one frame, answer with Triton's cache as one archive, and end."""
    # No context: an evaluation may be under way on the device.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    answer_once(sock, applied, "compile", _precompile)


def _precompile(frame: Frame, channel: Channel) -> dict[str, bytes]:
    paths = write_files(frame.fields["files"], frame.body)
    sys.path[:0] = frame.fields["import_paths"]
    channel.send("entering")
    compiled: list[Any] = []
    # An error here comes again on real tensors, and is the candidate's verdict there.
    with contextlib.suppress(Exception):
        _compile(frame.fields, paths, compiled, channel)
    _build_launchers(compiled)
    archive = _archived() if compiled else b""
    return {COMPILED_BY_TRITON: archive} if 0 < len(archive) <= MAX_BODY_BYTES // 2 else {}


def _compile(
    fields: dict[str, Any], paths: dict[str, str], compiled: list[Any], channel: Channel
) -> None:
    """Call the candidate as in `fields`; append each compiled launch to `compiled`."""
    _compile_launches(fields["arch"], compiled, channel)
    module = python.import_file(paths[fields["files"][0]["path"]])
    function = python.entry_of(module, fields["entry"])
    memory = FakeBlock(0, UNLIMITED_BYTES)
    with FakeTensorMode(shape_env=ShapeEnv()):
        if isinstance(function, type):
            init = build(fields["init"], memory, 0)
            # Constructed on the device: a module of fake tensors cannot be moved.
            with torch.device("cuda"):
                function = function(**init) if isinstance(init, dict) else function(*init)
        channel.send("imported")
        for call in fields["calls"]:
            # The other calls may still succeed.
            with contextlib.suppress(Exception):
                calls.run(function, calls.arguments(call, memory, 0))


class FakeBlock(Block):
    """Device memory without values."""

    def elements(self, dtype: torch.dtype, count: int, offset: int) -> torch.Tensor:  # noqa: ARG002
        return torch.empty(count, dtype=dtype, device="cuda")


class Pointer:
    """The parts of a tensor that Triton compiles for: its dtype, and its address's alignment."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype = tensor.dtype
        self._tensor = tensor

    def data_ptr(self) -> int:
        """Return an address with the alignment of fresh memory."""
        return 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._tensor, name)


def _build_launchers(compiled: list[Any]) -> None:
    """Build, with the host's compiler, the extensions by which Triton launches these kernels."""
    from triton.backends.nvidia import driver

    with contextlib.suppress(Exception):
        # This builds the extension first, and fails afterwards: there is no device.
        driver.CudaUtils()
    for kernel in compiled:
        # Internals of Triton, which change with its version. A runner builds the missing ones.
        with contextlib.suppress(Exception):
            driver.CudaLauncher(kernel.src, kernel.metadata)


def _compile_launches(arch: int, kept: list[Any], channel: Channel) -> None:
    """Replace Triton's launch by a compilation, and append each result to `kept`.

    The compiler runs in this process, so the channel gets a frame before and after it.
    """
    from triton.runtime import jit

    install_driver_stub(arch, "cuda")
    _stub_device(arch)
    run: Callable[..., Any] = jit.JITFunction.run

    def compile_it(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ANN401, ARG001
        named = {name: _pointer(value) for name, value in kwargs.items()}
        channel.send("compiling")
        try:
            kept.append(run(self, *map(_pointer, args), grid=grid, warmup=True, **named))
        finally:
            channel.send("compiled")
        return kept[-1]

    jit.JITFunction.run = compile_it


def _stub_device(arch: int) -> None:
    """Let torch answer as if it had one device of this architecture."""
    # The original creates a CUDA context, for gradients, which fake tensors do not need.
    vars(fake_tensor)["init_gpu_context"] = lambda *_: None
    properties = SimpleNamespace(
        name="", major=arch // 10, minor=arch % 10, multi_processor_count=MULTIPROCESSORS
    )
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda *_: None,
        "synchronize": lambda *_: None,
        "get_device_capability": lambda *_: divmod(arch, 10),
        "get_device_properties": lambda *_: properties,
        "get_device_name": lambda *_: "",
        # Those by which `with torch.cuda.device(...)` changes the device.
        "_exchange_device": lambda *_: 0,
        "_maybe_exchange_device": lambda *_: 0,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


def _pointer(value: Any) -> Any:  # noqa: ANN401
    return Pointer(value) if isinstance(value, torch.Tensor) else value


def _archived() -> bytes:
    if not os.path.isdir(CACHE) or not os.listdir(CACHE):
        return b""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        # Without the choices of autotuning, which come from times of the compiler.
        archive.add(
            CACHE, ".", filter=lambda each: None if each.name.endswith(".autotune.json") else each
        )
    return buffer.getvalue()
