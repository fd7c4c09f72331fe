"""The compiler: Triton kernels are compiled before any device lease, without a device.

The candidate is called on tensors that have a shape and no contents (torch's fake tensors), and
each of its launches is compiled instead of made. What cannot be run like that, because it looks at
values or addresses, is compiled when it is first called.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import tarfile
from collections.abc import Callable
from typing import Any

# Here, in the forkserver: every child that makes a fake tensor would import it again.
import torch
import torch._dynamo
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tilewright.runner import calls
from tilewright.runner.launch_counter import CACHE, install_driver_stub
from tilewright.runner.loaders import python
from tilewright.runner.main import _write_files, describe_error
from tilewright.wire.cuda_driver import Block
from tilewright.wire.frames import MAX_BODY_BYTES, Channel
from tilewright.wire.names import COMPILED_BY_TRITON
from tilewright.wire.tensors import build

UNBOUNDED = 1 << 62


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Compile what one frame asks for, answer with Triton's cache as one archive, and end."""
    # No context is made: an evaluation may be under way on the device.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    frame = channel.receive()
    fields = frame.fields
    try:
        paths = _write_files(fields["files"], frame.body)
        sys.path[:0] = fields["import_paths"]
        channel.send("entering")
        # What it raises here it raises again on real tensors, where that is its verdict.
        compiled: list[Any] = []
        with contextlib.suppress(Exception):
            _compile(fields, paths, compiled)
        _build_launchers(compiled)
        archive = _archived() if compiled else b""
    except BaseException as error:  # noqa: BLE001 - whatever a candidate raises is data
        channel.send("error", {"during": "compile", **describe_error(error)})
        return
    fits = 0 < len(archive) <= MAX_BODY_BYTES // 2
    sizes = {COMPILED_BY_TRITON: len(archive)} if fits else {}
    channel.send("built", {"artifacts": sizes}, archive if fits else b"")


def _compile(fields: dict[str, Any], paths: dict[str, str], compiled: list[Any]) -> None:
    """Call the candidate on every call in `fields`; what its launches are goes to `compiled`."""
    _compile_launches(fields["arch"], compiled)
    module = python.import_file(paths[fields["files"][0]["path"]])
    function = python.entry_of(module, [fields["entry"]])
    with FakeTensorMode(shape_env=ShapeEnv()):
        if isinstance(function, type):
            init = build(fields["init"], Unreal(), 0)
            # Made there: a module of fake tensors cannot be moved.
            with torch.device("cuda"):
                function = function(**init) if isinstance(init, dict) else function(*init)
        for call in fields["calls"]:
            # One that cannot be run like that says nothing of the others.
            with contextlib.suppress(Exception):
                calls.run(function, _call_of(call))


class Unreal(Block):
    """Memory without contents."""

    def __init__(self) -> None:
        super().__init__(0, UNBOUNDED)

    def __len__(self) -> int:
        """Return a size that everything fits."""
        return UNBOUNDED

    def elements(self, dtype: torch.dtype, count: int, offset: int) -> torch.Tensor:  # noqa: ARG002
        """Return `count` elements without contents."""
        return torch.empty(count, dtype=dtype, device="cuda")


def _call_of(fields: dict[str, Any]) -> calls.Call:
    grads = tuple(fields["grads"])
    return calls.Call(
        args=tuple(build(fields["args"], Unreal(), 0)),
        grads=grads,
        grad_outputs=tuple(build(fields["grad_outputs"], Unreal(), 0)) if grads else (),
        first_byte=0,
        input_bytes=0,
    )


class Pointer:
    """What Triton asks of a tensor when it compiles: a dtype, and how its address is aligned."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype = tensor.dtype
        self._tensor = tensor

    def data_ptr(self) -> int:
        """Return an address that is aligned as fresh memory is."""
        return 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._tensor, name)


def _build_launchers(compiled: list[Any]) -> None:
    """Build, with the host's compiler, the extensions by which Triton launches these kernels."""
    from triton.backends.nvidia import driver

    with contextlib.suppress(Exception):
        # It is built first, and then does not find a device.
        driver.CudaUtils()
    for kernel in compiled:
        # Triton's own, and other ones in each version: what fails is built at the first launch.
        with contextlib.suppress(Exception):
            driver.CudaLauncher(kernel.src, kernel.metadata)


def _compile_launches(arch: int, kept: list[Any]) -> None:
    """Have every launch compiled instead of made, and keep what came of it in `kept`."""
    from triton.runtime import jit

    install_driver_stub(arch, "cuda")
    # It would make a context, for gradients, which no fake tensor needs here.
    vars(fake_tensor)["init_gpu_context"] = lambda *_: None
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.get_device_capability = lambda *_: divmod(arch, 10)
    run: Callable[..., Any] = jit.JITFunction.run

    def compile_it(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ANN401, ARG001
        named = {name: _pointer(value) for name, value in kwargs.items()}
        kept.append(run(self, *map(_pointer, args), grid=grid, warmup=True, **named))
        return kept[-1]

    jit.JITFunction.run = compile_it


def _pointer(value: Any) -> Any:  # noqa: ANN401
    return Pointer(value) if isinstance(value, torch.Tensor) else value


def _not_tuned(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what autotuning chose: here it has timed the compiler."""
    return None if member.name.endswith(".autotune.json") else member


def _archived() -> bytes:
    """Return Triton's cache as a tar archive, or nothing when it is empty."""
    if not os.path.isdir(CACHE) or not os.listdir(CACHE):
        return b""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(CACHE, arcname=".", filter=_not_tuned)
    return buffer.getvalue()
