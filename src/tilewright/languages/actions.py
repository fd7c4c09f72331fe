"""Regions of a program and the optimisations that are legal on them, as MTMC's decider chooses.

MTMC (QiMeng-Kernel, arXiv 2511.20100, section on actions) has four types of optimisation and finds
regions by syntax and data flow. It publishes neither the grammar nor the rules of legality, which
are ours. A fusion needs a region that reads what another one writes. Tiling and pipelining need a
launch or a loop nest. Reordering needs two loop axes, or two independent statements.

A region is named after its function or operator, and not after its place. It keeps its name through
an edit of other regions, unless another region of the same name comes or goes.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from tilewright.languages.cpp_lexer import looks_native
from tilewright.languages.cpp_loops import kernel_name, loop_regions
from tilewright.languages.host_flow import HostFlow, host_flows
from tilewright.languages.host_values import HostStep
from tilewright.languages.kernel_bodies import KernelBody, kernel_bodies
from tilewright.languages.syntax import Module, literal_text, parse_module

ActionType = Literal["tile", "fuse", "reorder", "pipeline"]
STOP = "stop"
"""The choice that ends a sequence of actions; no program needs to allow it."""
WHOLE_PROGRAM = "program"
"""The region of a program in a language whose regions are unknown."""
SENTENCES: dict[ActionType, str] = {
    "tile": "retile the {0}",
    "fuse": "fuse the {0} with the {1}",
    "reorder": "reorder the {0}",
    "pipeline": "apply pipelining to the {0}",
}


@dataclass(frozen=True)
class Action:
    """One optimisation of one region, or of two for a fusion."""

    type: ActionType
    region: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the action as a sentence, as a model reads it."""
        return SENTENCES[self.type].format(*self.region)


@dataclass(frozen=True)
class Region:
    """A named part of a program."""

    name: str
    nested: bool = False
    """Whether it is a launch or a loop nest."""
    reorderable: bool = False
    """Whether it has two loop axes, or two independent statements."""


@runtime_checkable
class ActionSource(Protocol):
    """A language that finds regions and legal actions. `Language` does not require it."""

    def actions(self, code: str) -> tuple[Action, ...]:
        """Return the legal actions on a program; none if it has no region."""


def legal_actions(
    regions: Sequence[Region], edges: Iterable[tuple[str, str]]
) -> tuple[Action, ...]:
    """Return the legal actions on regions, by type and then in the order of the program.

    `edges` holds pairs of regions of which the second reads what the first writes.
    """
    nested = [region for region in regions if region.nested]
    found = [
        *(Action("tile", (region.name,)) for region in nested),
        *(Action("fuse", edge) for edge in edges if edge[0] != edge[1]),
        *(Action("reorder", (region.name,)) for region in nested if region.reorderable),
        *(Action("pipeline", (region.name,)) for region in nested),
    ]
    return tuple(dict.fromkeys(found))


def whole_program() -> tuple[Action, ...]:
    """Return the actions on a program of unknown regions: it may be anything, so all are legal."""
    return legal_actions([Region(WHOLE_PROGRAM, nested=True, reorderable=True)], ())


def action_of(text: str, actions: Iterable[Action]) -> Action | None:
    """Return the action that a sentence means; `None` if it is none of them."""
    return {action.text: action for action in actions}.get(text)


def python_actions(code: str) -> tuple[Action, ...]:
    """Return the legal actions on Python code: its kernels, its operators, and C++ in its strings.

    Only operators and launches on which a result depends are regions.
    """
    module = parse_module("candidate.py", code)
    if not isinstance(module, Module):
        return ()
    regions: dict[str, Region] = {}
    edges: list[tuple[str, str]] = []
    kernels = kernel_bodies(module)
    for flow in host_flows(module):
        names = _names(flow, kernels)
        for step in flow.on_output_path():
            regions.setdefault(names[step.number], _region(step, names[step.number], kernels))
            edges += [(names[before], names[step.number]) for before in step.reads]
    for text in _native_texts(module):
        inner, feeds = _native_regions(text)
        regions |= {region.name: region for region in inner}
        edges += feeds
    return legal_actions([*regions.values()], edges)


def native_actions(code: str) -> tuple[Action, ...]:
    """Return the legal actions on C++ or CUDA code: its loop nests and its kernels."""
    return legal_actions(*_native_regions(code))


def _native_regions(code: str) -> tuple[list[Region], list[tuple[str, str]]]:
    found = loop_regions(code)
    regions = [Region(each.name, nested=True, reorderable=each.axes > 1) for each in found]
    return regions, [(before, each.name) for each in found for before in each.reads]


def _region(step: HostStep, name: str, kernels: dict[str, KernelBody]) -> Region:
    if step.kind == "operator":
        return Region(name)
    body = kernels.get(step.name)
    reorderable = body is not None and (body.axes > 1 or body.independent)
    return Region(name, nested=True, reorderable=reorderable)


def _names(flow: HostFlow, kernels: dict[str, KernelBody]) -> dict[int, str]:
    """Return the region of each step: all launches of a kernel are one region."""
    path = flow.on_output_path()
    short = Counter(map(kernel_name, kernels))
    operators = Counter(step.name for step in path if step.kind == "operator")
    found: dict[int, str] = {}
    taken: Counter[str] = Counter()
    for step in path:
        if step.kind == "launch":
            name = kernel_name(step.name)
            found[step.number] = name if short[name] < 2 else f"{step.name} kernel"
            continue
        name = step.name
        if operators[name] > 1:
            name = f"{name} into {step.target}" if step.target else name
            taken[name] += 1
            name = name if taken[name] == 1 else f"{name} no. {taken[name]}"
        found[step.number] = name
    return found


def _native_texts(module: Module) -> list[str]:
    texts = (literal_text(node) for node in module.nodes if isinstance(node, ast.Constant))
    return [text for text in texts if text and looks_native(text)]
