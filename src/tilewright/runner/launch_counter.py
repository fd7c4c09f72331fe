"""The launch counter: counts or suppresses the candidate's own kernel launches, never by name.

The candidate can change this code, so its counts are self-reported: only launch suppression in a
fresh runner decides. A launch of a compiled Triton kernel gets its launcher from one attribute,
which this module replaces, also for kernels that are kept. A replay of a CUDA graph counts the own
launches that were captured. The loaders wrap C ABI kernels and extensions. A built library may also
be called through `ctypes`.
"""

from __future__ import annotations

import ctypes
import os
import tarfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch._C._dynamo import eval_frame as frames

_F = TypeVar("_F", bound=Callable[..., Any])
UNTRACED = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)
"""For torch.compile: run a frame, and all frames that it calls, as they are."""
MAX_LAUNCHES = 64
"""Launches of a profiled call whose shapes are reported."""


class Launches:
    """The number of own launches so far, and whether launches are suppressed."""

    def __init__(self, *, suppress: bool, fail: bool = False) -> None:
        self.count = 0
        self._mark: Callable[[], Any] | None = None
        self._capturing = False
        self.suppress = suppress
        self.fail = fail
        """Whether a suppressed launch raises, as that of a kernel that cannot run does."""
        self.timed = False
        """Whether the call is timed; a suppressed launch then need not overwrite its outputs."""
        self.spans: list[tuple[Any, Any]] | None = None
        """Events around each own launch of a call on a device; `None`: no profile was requested."""
        self.launched: list[tuple[Any, tuple[Any, ...]]] = []
        """Compiled Triton kernels of a profiled call, each with the first arguments of a launch."""

    @contextmanager
    def spanned(self, mark: Callable[[], Any] | None) -> Iterator[None]:
        """Record an event with `mark` before and after each own launch in the block."""
        self.spans, self._mark = ([], mark) if mark else (None, None)
        self.launched = []
        try:
            yield
        finally:
            self._mark = None

    def span_us(self) -> float | None:
        """Return the microseconds between the recorded events; the device has passed them all."""
        if self.spans is None:
            return None
        return sum(float(begin.elapsed_time(end)) * 1e3 for begin, end in self.spans)

    def measured(self, launch: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Make an own launch, between two events within a `spanned` block."""
        # An event that a graph records has no time.
        begin = self._mark() if self._mark and not self._capturing else None
        result = launch(*args, **kwargs)
        if begin is not None and self.spans is not None and self._mark:
            self.spans.append((begin, self._mark()))
        return result

    def wrap(self, launch: Callable[..., Any], kernel: Any = None) -> Callable[..., Any]:  # noqa: ANN401
        """Return `launch` counted, or a no-op that is counted when suppressing.

        `kernel` is the compiled Triton kernel that it launches, if it launches one.
        """

        @untraced
        def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if self.suppress and self.fail:
                raise RuntimeError("this launch is suppressed")
            if self._mark and kernel is not None and len(self.launched) < MAX_LAUNCHES:
                self.launched.append((kernel, args[:3]))
            result = None if self.suppress else self.measured(launch, *args, **kwargs)
            # After the launch: one that raises has done no work, whatever catches the error.
            self.count += 1
            return result

        return counted

    def hook_triton(self) -> None:
        """Route every Triton launch of this process through this counter."""
        try:
            import triton  # noqa: F401
        except ImportError:
            return
        if os.environ.get("TRITON_INTERPRET") == "1":
            from triton.runtime import interpreter

            interpreter.GridExecutor.__call__ = self.wrap(interpreter.GridExecutor.__call__)
            install_driver_stub(80, "cpu")
        else:
            from triton.compiler.compiler import CompiledKernel

            self.hook_compiled(CompiledKernel)

    def hook_compiled(self, kind: Any) -> None:  # noqa: ANN401 - a class of Triton
        """Route the launches of compiled kernels through this counter.

        `@triton.jit` functions, their compiled kernels and kept launchers all read this property.
        """
        launcher_of: Callable[[Any], Any] = kind.run.fget

        @untraced
        def run(kernel: Any) -> Any:  # noqa: ANN401
            launcher = launcher_of(kernel)
            if _is_made_by_torch(kernel):
                return launcher
            inner, counted = vars(kernel).get("_tilewright_run", (None, None))
            if inner is not launcher:
                counted = self.wrap(launcher, kernel)
                kernel._tilewright_run = launcher, counted
            return counted

        kind.run = property(run)

    def hook_graphs(self, kind: Any = torch.cuda.CUDAGraph) -> None:  # noqa: ANN401
        """Count a replay of a graph as the own launches that were captured in it."""
        begin, end, replay = kind.capture_begin, kind.capture_end, kind.replay

        @untraced
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            begin(graph, *args, **kwargs)
            graph._tilewright_count, self._capturing = self.count, True

        @untraced
        def capture_end(graph: Any) -> None:  # noqa: ANN401
            self._capturing = False
            end(graph)
            graph._tilewright_own = self.count - graph._tilewright_count

        @untraced
        def counted_replay(graph: Any) -> None:  # noqa: ANN401
            own = getattr(graph, "_tilewright_own", 0)
            if not own:
                replay(graph)
                return
            self.measured(replay, graph)
            self.count += own

        kind.capture_begin, kind.capture_end = capture_begin, capture_end
        kind.replay = counted_replay

    def hook_ctypes(self, paths: Collection[str], kind: Any = ctypes.CDLL) -> None:  # noqa: ANN401
        """Count the calls that `ctypes` makes into the libraries at `paths`."""
        create = kind.__init__

        def opened(library: Any, name: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            create(library, name, *args, **kwargs)
            if name in paths:
                library._FuncPtr = self._counted_functions(library._FuncPtr)

        kind.__init__ = opened

    def _counted_functions(self, inner: Any) -> type:  # noqa: ANN401
        """Return a type of foreign functions that are called through this counter."""

        class Counted(inner):  # type: ignore[misc]
            _flags_, _restype_ = inner._flags_, inner._restype_

            @untraced
            def __call__(function, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
                return self.wrap(partial(inner.__call__, function))(*args, **kwargs)

        return Counted


def untraced(function: _F) -> _F:
    """Keep torch.compile out of a function of ours that a candidate's compiled code calls.

    It would compile the function too, and an event that compiled code makes is never recorded.
    """
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    frames.set_code_exec_strategy(function.__code__, UNTRACED)
    return function


def _is_made_by_torch(kernel: Any) -> bool:  # noqa: ANN401
    """Tell whether torch.compile wrote the source of a kernel: it is not the candidate's own."""
    function = getattr(kernel.src, "fn", None)
    return str(getattr(function, "__module__", "")).startswith("torch.")


CACHE = "/tmp/triton"
"""Triton's cache of compiled kernels (`TRITON_CACHE_DIR`), private to each process."""


def poison(result: Any) -> None:  # noqa: ANN401
    """Overwrite every tensor in `result` with NaN, or with a large number."""
    if isinstance(result, torch.Tensor):
        result.detach().fill_(float("nan") if result.is_floating_point() else 113)
    elif isinstance(result, list | tuple):
        for item in result:
            poison(item)


def unpack_cache(path: str) -> None:
    """Unpack an archive of precompiled kernels into Triton's cache."""
    with tarfile.open(path) as archive:
        # Python before 3.11.4 has no filter; the sandbox confines the archive in any case.
        known = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(CACHE, **known)  # type: ignore[arg-type]


def install_driver_stub(arch: int, device: str) -> None:
    """Let Triton compile and `triton.autotune` choose where there is no driver."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    def bench(
        kernel_call: Callable[[], Any], quantiles: Sequence[float] = (), **_: object
    ) -> float | list[float]:
        start = time.perf_counter()
        kernel_call()
        elapsed = (time.perf_counter() - start) * 1e3
        return [elapsed] * len(quantiles) if quantiles else elapsed

    driver.set_active(
        SimpleNamespace(
            get_benchmarker=lambda: bench,
            get_current_device=lambda: 0,
            get_current_target=lambda: GPUTarget("cuda", arch, 32),
            get_current_stream=lambda *_: 0,
            get_device_interface=lambda: getattr(torch, device),
            get_active_torch_device=lambda: torch.device(device),
        )
    )
