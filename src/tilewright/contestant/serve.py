"""The contestant: loads one candidate, answers calls in bytes, and ends.

It is never believed. It receives inputs one call at a time, and the judge reads its outputs
from its memory; everything it says beside that is testimony. It holds no reference, expected
value, input seed, tolerance or number of trials.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import mmap
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from tilewright.contestant import calls
from tilewright.contestant.census import Census
from tilewright.contestant.frames import Channel, ChannelClosed, Frame, FrameError
from tilewright.contestant.launches import Launches
from tilewright.contestant.loaders import c_abi, python
from tilewright.contestant.tensors import build

GO, ARMED, DONE, OUTPUTS = 0, 8, 16, 64
"""Places in the token page, in 8-byte words, the tokens one cache line apart."""
ROOT = "/tmp/candidate"
_clock = time.monotonic
_libc = ctypes.CDLL(None, use_errno=True)
_malloc_trim = _libc.malloc_trim
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_disable_gc, _enable_gc = gc.disable, gc.enable


class Mirror:
    """Private memory like the input arena, on huge pages: timed calls read there.

    No other core has just written these pages, and they are placed alike in every side. Their
    address is fixed before any candidate is loaded, so that the supervisor knows where to look.
    """

    RESERVED = 1 << 36
    """Bytes of address space, not of memory: what is not grown into cannot be touched."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: int = _libc.mmap(None, self.RESERVED, 0, flags, -1, 0)
        if self.address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "no address space for the mirror of the inputs")
        self._memory: Any = (ctypes.c_char * 0).from_address(self.address)

    def grow(self, size: int) -> None:
        """Make the first `size` bytes usable."""
        if size > self.RESERVED:
            raise MemoryError(f"{size} bytes of inputs, at most {self.RESERVED} fit the mirror")
        if _libc.mprotect(self.address, size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"no memory for {size} bytes of inputs")
        _libc.madvise(self.address, size, mmap.MADV_HUGEPAGE)
        self._memory = (ctypes.c_char * size).from_address(self.address)

    def filled(self, inputs: mmap.mmap, base: int, size: int) -> Any:  # noqa: ANN401 - a buffer
        """Copy a slot of the arena here; return the mirror as a buffer."""
        ours = memoryview(self._memory).cast("B")
        ours[base : base + size] = memoryview(inputs)[base : base + size]
        return self._memory


class Contestant:
    """State between frames; its lifetime is the process."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.function: Callable[..., Any] | None = None
        self.inputs: mmap.mmap | None = None
        self.mirror = Mirror()
        self.kept: list[Any] = []
        """What the judge may be reading: outputs of the last call, or weights."""
        self.token: memoryview | None = None
        self.launches = Launches(suppress=False)
        self.expected: list[dict[str, Any]] = []

    def map(self, frame: Frame) -> None:
        """Map a new input arena and, the first time, the token page.

        The first answer carries this process's memory, read-only, for the judge: it is opened
        before the candidate is there, and needs no privilege.
        """
        fields = frame.fields
        self.inputs = mmap.mmap(frame.fds[0], fields["inputs"])
        self.mirror.grow(fields["inputs"])
        memory: tuple[int, ...] = ()
        if len(frame.fds) > 1:
            self.token = memoryview(mmap.mmap(frame.fds[1], mmap.PAGESIZE)).cast("Q")
            memory = (os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC),)
        self.channel.send("mapped", {"mirror": self.mirror.address}, fds=memory)
        for fd in (*frame.fds, *memory):
            os.close(fd)

    def load(self, frame: Frame) -> None:
        """Write the files, say that the candidate is entered, and load it."""
        fields = frame.fields
        paths = _write_files(fields["files"], frame.body)
        self.launches = Launches(suppress=fields["knockout"])
        self.launches.hook_triton()
        sys.path[:0] = fields["import_paths"]
        torch.set_num_threads(fields["threads"])
        self.channel.send("entering")
        self.function = self._load(fields, paths)
        self.channel.send("loaded", *_weights_of(self.function))

    def _load(self, fields: dict[str, Any], paths: dict[str, str]) -> Callable[..., Any]:
        artifacts = {name: paths[path] for name, path in fields["artifacts"].items()}
        if fields["loader"] == "c_abi":
            function = c_abi.load(
                next(iter(artifacts.values())), fields["entry"], self.expected, self.launches
            )
            function.computes_gradients = True  # type: ignore[attr-defined]
            return function
        python.install_extensions(artifacts, self.launches)
        torch.manual_seed(fields["init_seed"])
        module = python.import_file(paths[fields["files"][0]["path"]])
        entry = python.entry_of(module, [fields["entry"], *fields["other_entries"]])
        function = entry
        if isinstance(entry, type):
            init = build(fields["init"], _copied(self._inputs()), 0)
            torch.manual_seed(fields["init_seed"])
            function = entry(**init) if isinstance(init, dict) else entry(*init)
            if isinstance(function, torch.nn.Module):
                function.train(fields["mode"] == "train")
        if fields["compile"] is not None:
            mode = None if fields["compile"] == "default" else fields["compile"]
            function = torch.compile(function, mode=mode)
        return function

    def weights(self, frame: Frame) -> None:
        """Load the judge's weights, by name, through `load_state_dict`."""
        values = build(frame.fields["tree"], self._inputs(), frame.fields["base"])
        state = {name: value.clone() for name, value in values.items()}
        function = self._loaded()
        if isinstance(function, torch.nn.Module):
            function.load_state_dict(state, strict=False)
        self.channel.send("weights_loaded")

    def read_weights(self, frame: Frame) -> None:
        """Say where the current weights lie, so that the judge can match values."""
        function = self._loaded()
        state = function.state_dict() if isinstance(function, torch.nn.Module) else {}
        self.kept = [state[name].detach().contiguous() for name in frame.fields["names"]]
        self.channel.send("weights_read", {"addresses": [value.data_ptr() for value in self.kept]})

    def call(self, frame: Frame) -> None:
        """Answer one untimed call, with the operator census where it is asked for."""
        fields = frame.fields
        self._expect(fields)
        call = calls.prepare(fields, self._inputs())
        before = self.launches.count
        census = Census() if fields.get("census") else None
        if census is None:
            output = calls.run(self._loaded(), call)
        else:
            with census:
                output = calls.run(self._loaded(), call)
        self.kept, structure = calls.deliver(output)
        described = calls.describe(self.kept, structure, call)
        calls.mark_views(described, output, call)
        self.channel.send(
            "result",
            {
                "outputs": described,
                "launches": self.launches.count - before,
                "census": census.counts if census else {},
            },
        )

    def arm(self, frame: Frame) -> None:
        """Answer one timed call: spin until released, compute, raise the done token."""
        fields = frame.fields
        self._expect(fields)
        function, token = self._loaded(), self._token()
        self.kept = []
        call = calls.prepare(
            fields, self.mirror.filled(self._inputs(), fields["base"], fields["size"])
        )
        sequence = fields["sequence"]
        before = self.launches.count
        give_up = _clock() + fields["wait_s"]
        _disable_gc()
        token[ARMED] = sequence
        while token[GO] != sequence:
            if _clock() > give_up:
                raise TimeoutError("armed, but never released")
        self.kept, structure = calls.deliver(calls.run(function, call))
        for place, address in enumerate(calls.addresses(self.kept)):
            token[OUTPUTS + place] = address
        token[DONE] = sequence
        _enable_gc()
        self.channel.send(
            "result",
            {
                "outputs": calls.describe(self.kept, structure, call),
                "launches": self.launches.count - before,
                "census": {},
            },
        )

    def exit(self, frame: Frame) -> None:  # noqa: ARG002
        """Tear the candidate down as the end of a program would, say goodbye, and end.

        Its module is cleared, its destructors and exit handlers run, and the heap is walked, so
        that corrupted memory is met here. Our own libraries are not finalised: that takes longer
        than most evaluations and shows nothing of the candidate.
        """
        self.function = None
        for name in [name for name, module in sys.modules.items() if _is_candidates(module)]:
            vars(sys.modules.pop(name)).clear()
        gc.collect()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                # The candidate may have closed or replaced it.
                stream.flush()
        _malloc_trim(0)
        self.channel.send("bye")
        os._exit(0)

    def _expect(self, fields: dict[str, Any]) -> None:
        if "expected" in fields:
            self.expected[:] = fields["expected"]

    def _loaded(self) -> Callable[..., Any]:
        if self.function is None:
            raise RuntimeError("nothing is loaded")
        return self.function

    def _inputs(self) -> mmap.mmap:
        if self.inputs is None:
            raise RuntimeError("no input arena is mapped")
        return self.inputs

    def _token(self) -> memoryview:
        if self.token is None:
            raise RuntimeError("no token page is mapped")
        return self.token


def _copied(arena: mmap.mmap) -> mmap.mmap:
    """Return private memory of the same contents: a module may keep what it was built from."""
    private = mmap.mmap(-1, len(arena))
    private.write(memoryview(arena))
    return private


def _write_files(files: list[dict[str, Any]], body: bytes) -> dict[str, str]:
    paths: dict[str, str] = {}
    start = 0
    for item in files:
        path = os.path.join(ROOT, item["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(body[start : start + item["size"]])
        paths[item["path"]] = path
        start += item["size"]
    return paths


def _weights_of(function: Any) -> tuple[dict[str, Any], bytes]:  # noqa: ANN401
    if not isinstance(function, torch.nn.Module):
        return {}, b""
    import json

    entries = [
        [name, list(value.shape), str(value.dtype).removeprefix("torch.")]
        for name, value in function.state_dict().items()
        if isinstance(value, torch.Tensor)
    ]
    return {}, json.dumps(entries).encode()


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return type, message and the candidate's own traceback, each cut to a bounded length."""
    try:
        message = str(error)[:4000]
    except BaseException:  # noqa: BLE001 - the candidate's __str__ may raise anything
        message = "(its message cannot be shown)"
    try:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename.startswith(ROOT)] or frames[-1:]
        lines = [
            f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}"[:300]
            for frame in own[-12:]
        ]
    except BaseException:  # noqa: BLE001 - so may anything that it patched
        lines = []
    return {"type": type(error).__name__[:200], "message": message, "traceback": lines}


def _is_candidates(module: Any) -> bool:  # noqa: ANN401 - anything may stand in sys.modules
    """Tell whether a module was loaded from the candidate's own files."""
    return str(getattr(module, "__file__", "") or "").startswith(ROOT)


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Serve frames until told to exit; an exception of the candidate is an answer."""
    channel = Channel(sock)
    contestant = Contestant(channel)
    handlers = {
        "map": contestant.map,
        "load": contestant.load,
        "weights": contestant.weights,
        "read_weights": contestant.read_weights,
        "call": contestant.call,
        "arm": contestant.arm,
        "exit": contestant.exit,
    }
    channel.send("ready", {"applied": applied})
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        try:
            handlers[frame.kind](frame)
        except ChannelClosed:
            return
        except BaseException as error:
            # Whatever a candidate raises, SystemExit too, is an answer. Once it is loaded this
            # process is its own, so an error of the harness cannot be told apart; what fails
            # before that is blamed on us by the supervisor, who knows when it was entered.
            if frame.kind == "exit":
                raise
            said = {"during": frame.kind, **describe_error(error)}
            try:
                channel.send("error", said)
            except FrameError:
                # Escaped, it is longer than a frame may be.
                channel.send("error", {**said, "message": "(too long)", "traceback": []})
