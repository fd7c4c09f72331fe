"""Problem code that asks for a CUDA device gets the CPU, where the CPU is the judging device.

Tests of published benchmarks name `cuda` in every tensor that they make. `CudaOnCpu` changes the
device in torch's own calls: `torch.randn(..., device="cuda")`, `x.cuda()`, `x.to("cuda:0")`,
`module.cuda()`, `torch.Generator("cuda")`. It is active while the judge runs problem code whose
text has the word, and never while a candidate runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")


class CudaOnCpu(TorchFunctionMode):
    """Gives the CPU to code that asks for a CUDA device. Lifetime: one problem."""

    def __init__(self) -> None:
        super().__init__()
        self.used = False
        """Whether any code asked for a CUDA device."""
        self.used_by_reference = False
        """Whether code that a baseline runs too did so: all but the generator of inputs."""
        self.makes_inputs = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever torch returns
        if func is torch.Tensor.cuda:
            self._note()
            return args[0].to(CPU)
        given = [self.on_cpu(value) for value in args]
        named = {name: self.on_cpu(value) for name, value in (kwargs or {}).items()}
        return func(*given, **named)

    def on_cpu(self, value: Any) -> Any:  # noqa: ANN401 - an argument of any call
        """Return an argument, or the CPU for a CUDA device."""
        if not _is_cuda(value):
            return value
        self._note()
        return CPU

    def _note(self) -> None:
        self.used = True
        self.used_by_reference |= not self.makes_inputs


def _generators(mode: CudaOnCpu) -> type[torch.Generator]:
    """Return a class to use for `torch.Generator`, also in annotations."""

    class CpuGenerator(torch.Generator):
        def __new__(cls, device: Any = CPU) -> CpuGenerator:  # noqa: ANN401 - as torch takes it
            mode.on_cpu(device)
            return super().__new__(cls, CPU)  # type: ignore[call-arg]

    return CpuGenerator


def _is_cuda(value: object) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.partition(":")[0] == "cuda"


@contextmanager
def redirected(mode: CudaOnCpu) -> Iterator[None]:
    """Let problem code run under `mode`."""
    # Two things that are no function of torch which a mode sees.
    waits = patch.object(torch.cuda, "synchronize", lambda *_: None)
    generators = patch.object(torch, "Generator", _generators(mode))
    with mode, waits, generators:
        yield
