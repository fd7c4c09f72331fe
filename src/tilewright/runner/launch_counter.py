"""The launch shim: counts or suppresses the candidate's own kernel launches, never by name.

Triton: every launch of a `@triton.jit` function passes one method of the launcher class, which is
replaced here before the candidate is loaded. C ABI kernels and extensions are wrapped by their
loader. What is counted here is testimony; the verdict needs the knock-out to agree with it.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Launches:
    """The number of own launches so far, and whether launches are suppressed."""

    def __init__(self, *, suppress: bool) -> None:
        self.count = 0
        self._mark: Callable[[], Any] | None = None
        self.suppress = suppress
        self.timed = False
        """Whether the call is timed: then what a suppressed launch leaves need not be poisoned."""
        self.spans: list[tuple[Any, Any]] | None = None
        """Events around each own launch of a call on a device, where they are asked for."""

    @contextmanager
    def spanned(self, mark: Callable[[], Any] | None) -> Iterator[None]:
        """Keep an event, made by `mark`, before and after each own launch in the block."""
        self.spans, self._mark = ([], mark) if mark else (None, None)
        try:
            yield
        finally:
            self._mark = None

    def span_us(self) -> float | None:
        """Return the microseconds between the kept events, once the device has met them all."""
        if self.spans is None:
            return None
        return sum(float(begin.elapsed_time(end)) * 1e3 for begin, end in self.spans)

    def measured(self, launch: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Make an own launch, between two events where they are asked for."""
        begin = self._mark() if self._mark else None
        result = launch(*args, **kwargs)
        if begin is not None and self.spans is not None and self._mark:
            self.spans.append((begin, self._mark()))
        return result

    def wrap(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        """Return `launch` counted, or a no-op that is counted when suppressing."""

        def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            result = None if self.suppress else self.measured(launch, *args, **kwargs)
            # Only now: a launch that raises has done no work, whatever catches it.
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
            from triton.runtime import jit

            jit.JITFunction.run = self.wrap(jit.JITFunction.run)


CACHE = "/tmp/triton"
"""Where Triton keeps what it compiled: private to each child (`TRITON_CACHE_DIR`)."""


def unpack_cache(path: str) -> None:
    """Put an archive of what was compiled ahead where Triton looks for it."""
    with tarfile.open(path) as archive:
        # Pythons before 3.11.4 know no filter; it is the candidate's own sandbox either way.
        known = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(CACHE, **known)  # type: ignore[arg-type]


def install_driver_stub(arch: int, device: str) -> None:
    """Let Triton compile and `triton.autotune` choose where there is no driver."""
    import time

    from triton.runtime import driver

    class DriverStub:
        def get_benchmarker(self) -> Callable[..., float | list[float]]:
            def bench(
                kernel_call: Callable[[], Any],
                quantiles: Sequence[float] | None = None,
                **_: object,
            ) -> float | list[float]:
                start = time.perf_counter()
                kernel_call()
                elapsed = (time.perf_counter() - start) * 1e3
                return [elapsed] * len(quantiles) if quantiles else elapsed

            return bench

        def get_current_device(self) -> int:
            return 0

        def get_current_target(self) -> Any:  # noqa: ANN401
            from triton.backends.compiler import GPUTarget

            return GPUTarget("cuda", arch, 32)

        def get_current_stream(self, *_: object) -> int:
            return 0

        def get_device_interface(self) -> Any:  # noqa: ANN401
            import torch

            return getattr(torch, device)

        def get_active_torch_device(self) -> Any:  # noqa: ANN401
            import torch

            return torch.device(device)

    driver.set_active(DriverStub())
