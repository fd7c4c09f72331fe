"""The launch counter inside code that a candidate compiles with torch.compile."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from tilewright.runner.launch_counter import Launches

MATHS = ctypes.CDLL("libm.so.6")


def untraceable(x: torch.Tensor) -> torch.Tensor:
    """Launch as a driver does: Dynamo cannot trace `ctypes`."""
    MATHS.abs(3)
    return x + 1


def traceable(x: torch.Tensor) -> torch.Tensor:
    return x + 1


class Event:
    """An event that tells whether it was recorded outside of compiled code."""

    def __init__(self) -> None:
        self.compiled = torch.compiler.is_compiling()


@pytest.mark.parametrize("launch", [untraceable, traceable])
def test_compiled_code_neither_traces_nor_swallows_a_counted_launch(launch):
    launches, graphs = Launches(suppress=False), []
    own = launches.wrap(launch)

    def backend(module: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append([node.target for node in module.graph.nodes if node.op == "call_function"])
        return module.forward

    def candidate(x: torch.Tensor) -> torch.Tensor:
        return own(x * 2) * 3

    compiled = torch.compile(candidate, backend=backend)
    with launches.spanned(Event):
        for count in (1, 2):
            assert compiled(torch.ones(3)).tolist() == [9.0, 9.0, 9.0]
            assert launches.count == len(launches.spans or ()) == count
    assert not any(event.compiled for pair in launches.spans or () for event in pair)
    # The products before and after the launch, and nothing of the launch itself.
    assert [len(graph) for graph in graphs] == [1, 1]
    torch._dynamo.reset()


def test_a_suppressed_launch_stays_suppressed_in_compiled_code():
    launches = Launches(suppress=True)
    own = launches.wrap(untraceable)
    compiled = torch.compile(lambda x: own(x) is None, backend="eager")
    assert compiled(torch.ones(3))
    assert launches.count == 1
    torch._dynamo.reset()
