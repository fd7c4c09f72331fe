"""How torch behaves while the judge runs problem code: devices, and memory that nobody wrote."""

from __future__ import annotations

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
was not written, or was computed from memory that was not."""


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
    else:
        value.fill_(fill)


@dataclass(frozen=True)
class ProblemModes:
    """The modes that problem code needs, by its text; code that needs none runs as it is."""

    on_cpu: CudaOnCpu | None
    memory: FilledMemory | None

    @classmethod
    def of(cls, source: str, device: torch.device) -> ProblemModes:
        """Return the modes for problem code that is judged on a device."""
        on_cpu = CudaOnCpu() if device.type == "cpu" and "cuda" in source else None
        return cls(on_cpu, FilledMemory() if "empty" in source else None)

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
        """Fill memory with another value; the result tells whether problem code allocates any."""
        if self.memory is None or not self.memory.used:
            yield False
            return
        self.memory.fill = FILLS[1]
        try:
            yield True
        finally:
            self.memory.fill = FILLS[0]


NO_MODES = ProblemModes(None, None)
"""The modes of problem code that needs none."""
