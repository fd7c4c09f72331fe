"""The untrusted runner process: it loads one implementation, answers calls, and ends.

Nothing that this process sends is believed: the judge reads the outputs out of its memory, and the
rest of its answers is self-reported. It receives inputs one call at a time. It holds no reference,
expected value, input seed, tolerance or number of trials.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from tilewright.runner import calls, kernel_shapes
from tilewright.runner.calls import Function
from tilewright.runner.host_memory import CallMemory, HostCallMemory, grow_heap
from tilewright.runner.launch_counter import Launches, unpack_cache
from tilewright.runner.loaders import c_abi, python
from tilewright.runner.operator_counts import OperatorCounts
from tilewright.runner.sandbox import seccomp
from tilewright.wire.builder_calls import BuilderCall
from tilewright.wire.frames import Channel, ChannelClosed, Frame, FrameError
from tilewright.wire.names import COMPILED_BY_TRITON
from tilewright.wire.tensors import build, dtype_name

ROOT = "/tmp/candidate"
"""Folder inside the sandbox that holds the implementation's files."""
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
"""Folder of this program, whose frames tell the author of a candidate nothing."""
MAX_MESSAGE, MAX_TRACEBACK_LINES = 4000, 12
"""Characters of a reported error message; lines of its traceback."""
_BUILTIN_EXCEPTIONS = frozenset(
    one
    for one in vars(builtins).values()
    if isinstance(one, type) and issubclass(one, BaseException)
)
_malloc_trim = ctypes.CDLL(None).malloc_trim


class RunnerProcess:
    """State between frames; its lifetime is the process."""

    HANDLERS: tuple[str, ...] = (
        *("map", "grow_heap", "load", "weights", "read_weights"),
        *("call", "arm", "suppress_launches", "exit"),
    )
    """Kinds of frames, each the name of the method that answers it."""

    def __init__(self, channel: Channel, memory: CallMemory[Any] | None = None) -> None:
        self.channel = channel
        self.function: Function | None = None
        self.memory: CallMemory[Any] = memory or HostCallMemory()
        self.kept: list[Any] = []
        """Tensors that the judge may be reading: outputs of the last call, or weights."""
        self.held: dict[int, list[Any]] = {}
        """Outputs of timed calls that their caller holds, by the number of the call."""
        self.launches = Launches(suppress=False)
        self.expected: list[dict[str, Any]] = []
        """Dtype and shape of each output, which a C ABI kernel needs before its call."""

    def map(self, frame: Frame) -> None:
        answer, fds = self.memory.map(frame)
        self.channel.send("mapped", answer, fds=fds)
        for fd in (*frame.fds, *fds):
            os.close(fd)

    def grow_heap(self, frame: Frame) -> None:
        """Touch memory of the heap and free it, so that no timed call is the first to touch it."""
        grow_heap(frame.fields["size"])
        self.channel.send("heap_grown")

    def load(self, frame: Frame) -> None:
        """Write the files, report that foreign code is about to run, and load it."""
        fields = frame.fields
        paths = write_files(fields["files"], frame.body)
        fail = fields.get("launches_fail", False)
        self.launches = Launches(suppress=fields["suppressed"], fail=fail)
        self.launches.hook_triton()
        self.launches.hook_graphs()
        sys.path[:0] = fields["import_paths"]
        torch.set_num_threads(fields["threads"])
        self.channel.send("entering")
        self.function = self._load(fields, paths)
        self.channel.send("loaded", {}, _weights_of(self.function))

    def _load(self, fields: dict[str, Any], paths: dict[str, str]) -> Function:
        artifacts = {name: paths[path] for name, path in fields["artifacts"].items()}
        if COMPILED_BY_TRITON in artifacts:
            unpack_cache(artifacts.pop(COMPILED_BY_TRITON))
        if fields["loader"] == "c_abi":
            function = c_abi.load(
                next(iter(artifacts.values())), fields["entry"], self.expected, self.launches
            )
            function.computes_gradients = True  # type: ignore[attr-defined]
            return function
        python.install_extensions(artifacts, self.launches, ROOT, self._request_build)
        torch.manual_seed(fields["init_seed"])
        module = python.import_file(paths[fields["files"][0]["path"]])
        function = python.entry_of(module, fields["entry"])
        if isinstance(function, type):
            self.channel.send("constructing")
            init = build(fields["init"], self.memory.private_copy(fields["init_bytes"]), 0)
            torch.manual_seed(fields["init_seed"])
            function = function(**init) if isinstance(init, dict) else function(*init)
            if isinstance(function, torch.nn.Module):
                function.train(fields["mode"] == "train")
        function = self.memory.to_device(function)
        if fields["keywords"]:
            function = python.by_name(function, fields["keywords"])
        if fields["compile"] is not None:
            mode = None if fields["compile"] == "default" else fields["compile"]
            function = torch.compile(function, mode=mode)
        return function

    def _request_build(self, call: BuilderCall) -> NoReturn:
        """Ask for an extension that was not built, and end: the evaluation begins again with it."""
        self.channel.send("unbuilt", {}, call.encoded())
        os._exit(0)

    def weights(self, frame: Frame) -> None:
        """Load the judge's weights, by name, through `load_state_dict`."""
        values = build(frame.fields["tree"], self.memory.inputs, frame.fields["base"])
        state = {name: value.clone() for name, value in values.items()}
        function = _uncompiled(self._loaded())
        if isinstance(function, torch.nn.Module):
            function.load_state_dict(state, strict=False)
        self.channel.send("weights_loaded")

    def read_weights(self, frame: Frame) -> None:
        """Report the addresses of the current weights, so that the judge can match values."""
        function = _uncompiled(self._loaded())
        state = function.state_dict() if isinstance(function, torch.nn.Module) else {}
        wanted = [state[name].detach().contiguous() for name in frame.fields["names"]]
        self.kept = self.memory.expose(wanted)
        self.channel.send("weights_read", {"addresses": [value.data_ptr() for value in self.kept]})

    def call(self, frame: Frame) -> None:
        """Answer one untimed call, with operator counts if the frame requests them."""
        fields = frame.fields
        self._expect(fields)
        self.launches.timed = False
        call = calls.prepare(fields, self.memory.inputs)
        before = self.launches.count
        operators = OperatorCounts() if fields.get("count_operators") else None
        watched = operators or contextlib.nullcontext()
        output, self.kept, structure = self.memory.untimed(self._loaded(), call, watched)
        described = calls.describe(self.kept, structure, call, self.memory.moved)
        calls.mark_views(described, output, call)
        self._answer(described, before, operators.counts if operators else {})

    def arm(self, frame: Frame) -> None:
        """Answer one timed call: of the implementation, or before that of a known kernel."""
        fields = frame.fields
        self._expect(fields)
        # Compared with None: the truth value of a compiled module is an error.
        function = self.memory.known_kernel if self.function is None else self.function
        if function is None:
            function = self._loaded()
        before = self.launches.count
        self.kept, self.launches.timed = [], True
        self.held = {number: self.held[number] for number in fields["held"] if number in self.held}
        held = [span for leaves in self.held.values() for span in calls.spans(leaves)]
        with self.launches.spanned(self.memory.mark if fields.get("profile") else None):
            call, self.kept, structure, self_reported_us = self.memory.timed(function, fields, held)
        self.held[fields["sequence"]] = self.kept
        described = calls.describe(self.kept, structure, call, self.memory.moved)
        self._answer(described, before, {}, self_reported_us)

    def _answer(
        self,
        described: list[dict[str, Any]],
        before: int,
        operator_counts: dict[str, int],
        self_reported_us: float | None = None,
        peak_bytes: int | None = None,
    ) -> None:
        answer = {
            "outputs": described,
            "launches": self.launches.count - before,
            "operator_counts": operator_counts,
            "self_reported_us": self_reported_us,
            "own_us": self.launches.span_us(),
            "shapes": kernel_shapes.shapes_of(self.launches.launched),
            "peak_bytes": peak_bytes,
        }
        self.launches.spans, self.launches.launched = None, []
        self.channel.send("result", answer)

    def suppress_launches(self, frame: Frame) -> None:  # noqa: ARG002
        """Suppress the implementation's own launches from now on."""
        self.launches.suppress = True
        self.channel.send("run_suppressed")

    def exit(self, frame: Frame) -> None:  # noqa: ARG002
        """Tear the implementation down as the end of a program would, send `bye`, and end.

        This runs its destructors and exit handlers and walks the heap, so that corrupted memory is
        seen now. It finalises no library of ours: that takes longer than most evaluations.
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

    def _loaded(self) -> Function:
        if self.function is None:
            raise RuntimeError("nothing is loaded")
        return self.function


def write_files(files: list[dict[str, Any]], body: bytes) -> dict[str, str]:
    """Write files below `ROOT`, whose bytes follow one another in `body`; return their paths."""
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


def _uncompiled(function: Any) -> Any:  # noqa: ANN401
    """Return the module inside a compiled one; it has the weights under their own names."""
    return getattr(function, "_orig_mod", function)


def _weights_of(function: Any) -> bytes:  # noqa: ANN401
    """Return name, shape and dtype of each weight of a module as JSON."""
    function = _uncompiled(function)
    if not isinstance(function, torch.nn.Module):
        return b""
    entries = [
        [name, list(value.shape), dtype_name(value.dtype)]
        for name, value in function.state_dict().items()
        if isinstance(value, torch.Tensor)
    ]
    return json.dumps(entries).encode()


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return type, message and the candidate's own traceback, each cut to a bounded length."""
    try:
        message = str(error)[:MAX_MESSAGE]
    except BaseException:  # noqa: BLE001 - the candidate's __str__ may raise anything
        message = "(its message cannot be shown)"
    try:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename.startswith(ROOT)]
        if not own and not frames[-1].filename.startswith(OWN_FOLDER):
            # A library raised it for the candidate. A frame of this program says nothing.
            own = frames[-1:]
        lines = [
            f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}"[:300]
            for frame in own[-MAX_TRACEBACK_LINES:]
        ]
    except BaseException:  # noqa: BLE001 - so may anything that it patched
        lines = []
    report = {
        "type": type(error).__name__[:200],
        "builtin": _builtin_of(error),
        "message": message,
        "traceback": lines,
    }
    # By its exact type: a subclass of the candidate could raise anything here.
    if type(error) is ModuleNotFoundError and isinstance(error.name, str):
        report["missing"] = error.name[:200]
    return report


def _builtin_of(error: BaseException) -> str:
    """Return the name of the nearest built-in class of an exception."""
    try:
        classes = (one.__name__ for one in type(error).__mro__ if one in _BUILTIN_EXCEPTIONS)
        return next(classes, "")
    except BaseException:  # noqa: BLE001 - a metaclass of the candidate may raise anything
        return ""


def _is_candidates(module: Any) -> bool:  # noqa: ANN401 - sys.modules may hold any object
    """Tell whether a module was loaded from the candidate's own files."""
    # The dictionary, not `getattr` on the module: a lazy module of a library would begin to load.
    path = getattr(module, "__dict__", {}).get("__file__")
    return isinstance(path, str) and path.startswith(ROOT)


def main(
    sock: socket.socket,
    applied: dict[str, str],
    kind: Callable[[Channel], RunnerProcess] = RunnerProcess,
) -> None:
    """Answer frames until `exit`; an exception of the implementation is an answer."""
    channel = Channel(sock)
    applied = dict(applied)
    listeners: tuple[int, ...] = ()
    if applied.get("process_creation_guard") == "":
        # The kernel enforces the other isolation layers alone; here the supervisor must answer.
        try:
            listeners = (seccomp.listen(),)
        except OSError as error:
            applied["process_creation_guard"] = str(error)
    channel.send("ready", {"applied": applied}, fds=listeners)
    for listener in listeners:
        os.close(listener)
    # Before the first frame, so that a preforked runner already has its device.
    runner = kind(channel)
    handlers = {name: getattr(runner, name) for name in runner.HANDLERS}
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
            # Any exception of foreign code is an answer, SystemExit too. After `entering` an error
            # of ours looks the same. The supervisor attributes an earlier one to tilewright.
            if frame.kind == "exit":
                raise
            report = {"during": frame.kind, **describe_error(error)}
            try:
                channel.send("error", report)
            except FrameError:
                # The text of a foreign exception may be an object that JSON does not know.
                unseen = {"message": "(its message cannot be shown)", "traceback": []}
                channel.send("error", {**report, **unseen})
