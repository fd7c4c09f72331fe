"""How torch behaves while the judge runs problem code: devices, and memory that nobody wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tilewright.evaluator.judge.cuda_on_cpu import CudaOnCpu, redirected
from tilewright.evaluator.judge.number_formats import FLOAT8

ALLOCATIONS = frozenset(
    {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.empty_permuted,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }
)
"""Functions of torch whose result has undefined elements."""
FILLS = (3.0, 5.0)
"""Two values of undefined memory that every dtype can hold. An element that differs between them
was not written, or was computed from memory that was not. In place of the second one, types with
NaN hold NaN: a product with zero hides any other value, and real memory may hold NaN."""


OWN_KERNELS = ("triton", "load_inline", "cpp_extension", "cupy")
"""Words of problem code with kernels of its own, which may read beyond their inputs."""
MARGIN_BYTES = 1 << 16
"""Bytes with a known value before and after each input of such code. A kernel that loads whole
blocks reads so far beyond a short input, if it has no mask."""


class FilledMemory(TorchFunctionMode):
    """Fills memory that torch allocates with `fill`. Lifetime: one problem.

    A result that rests on undefined memory would otherwise be what earlier calls left there, the
    right result among them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fill = FILLS[0]
        self.used = False
        """Whether problem code has allocated memory so."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever torch returns
        made = func(*args, **(kwargs or {}))
        if func in ALLOCATIONS and made.layout == torch.strided:
            self.used = True
            with torch.no_grad():
                _fill(made, self.fill)
        return made


def _fill(value: torch.Tensor, fill: float) -> None:
    if value.dtype in FLOAT8:
        value.view(torch.uint8).fill_(int(fill))
    elif value.dtype == torch.bool:
        value.fill_(fill == FILLS[0])
    elif fill == FILLS[1] and (value.is_floating_point() or value.is_complex()):
        value.fill_(math.nan)
    else:
        value.fill_(fill)


def _bytes(value: torch.Tensor) -> torch.Tensor:
    """Return the bytes of dense elements, one row for each."""
    return value.view(torch.uint8).view(value.numel(), value.element_size())


@dataclass
class FilledMargins:
    """Copies inputs into memory that holds `fill` around them. Lifetime: one problem."""

    fill: float = FILLS[0]
    margins: list[torch.Tensor] | None = None
    """The memory around each copy that was made while writes into it are watched."""

    def copy(self, value: torch.Tensor) -> torch.Tensor:
        """Return a copy with the layout of `value`; what is not dense is cloned without margins."""
        if value.layout != torch.strided or value.is_quantized or not value.numel():
            return value.clone()
        extent = 1 + sum(
            (size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True)
        )
        margin = MARGIN_BYTES // value.element_size()
        with torch.no_grad():
            whole = torch.empty(extent + 2 * margin, dtype=value.dtype, device=value.device)
            _fill(whole, self.fill)
            made = whole.as_strided(value.shape, value.stride(), margin)
            if 0 in value.stride():
                whole[margin : margin + extent] = torch.as_strided(value, (extent,), (1,))
            else:
                made.copy_(value)
        if self.margins is not None:
            self.margins += [whole[:margin], whole[margin + extent :]]
        return made.requires_grad_(value.requires_grad)


@dataclass(frozen=True)
class ProblemModes:
    """The modes that problem code needs, by its text; code that needs none runs as it is."""

    on_cpu: CudaOnCpu | None
    memory: FilledMemory | None
    margins: FilledMargins | None = None

    @classmethod
    def of(cls, source: str, device: torch.device) -> ProblemModes:
        """Return the modes for problem code that is judged on a device."""
        on_cpu = CudaOnCpu() if device.type == "cpu" and "cuda" in source else None
        own = any(marker in source for marker in OWN_KERNELS)
        memory = FilledMemory() if "empty" in source else None
        return cls(on_cpu, memory, FilledMargins() if own else None)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Run problem code in these modes."""
        with ExitStack() as stack:
            if self.on_cpu is not None:
                stack.enter_context(redirected(self.on_cpu))
            if self.memory is not None:
                stack.enter_context(self.memory)
            yield

    @contextmanager
    def active_for_inputs(self) -> Iterator[None]:
        """Run the generator of inputs in these modes."""
        if self.on_cpu is None:
            with self.active():
                yield
            return
        self.on_cpu.makes_inputs = True
        try:
            with self.active():
                yield
        finally:
            self.on_cpu.makes_inputs = False

    @contextmanager
    def other_fill(self) -> Iterator[bool]:
        """Fill memory with another value; the result tells whether problem code could read any."""
        found: list[FilledMemory | FilledMargins] = []
        if self.memory is not None and self.memory.used:
            found.append(self.memory)
        if self.margins is not None:
            found.append(self.margins)
        for each in found:
            each.fill = FILLS[1]
        try:
            yield bool(found)
        finally:
            for each in found:
                each.fill = FILLS[0]

    def writes_outside(self, run: Callable[[], object]) -> bool:
        """Tell whether `run`, which copies its inputs, writes into the memory around a copy."""
        if self.margins is None:
            return False
        self.margins.margins = []
        try:
            run()
            watched = self.margins.margins
        finally:
            self.margins.margins = None
        expected = {value.dtype: value.new_empty(1) for value in watched}
        for value in expected.values():
            _fill(value, self.margins.fill)
        return any(bool((_bytes(v) != _bytes(expected[v.dtype])).any()) for v in watched)

    def copy(self, value: torch.Tensor) -> torch.Tensor:
        """Return a copy of an input, which problem code may overwrite."""
        return value.clone() if self.margins is None else self.margins.copy(value)


NO_MODES = ProblemModes(None, None)
"""The modes of problem code that needs none."""
