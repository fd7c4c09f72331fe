"""Rules that tell whether a program is written in Triton, and does not only look like it.

AutoTriton rewards a correct program only if it is Triton (arXiv 2507.05687, section on the reward).
Later papers found programs that satisfy the paper's rule with a kernel that decorates them. The
stricter rule follows the data from the entry point to the result.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal

from tilewright.languages.host_flow import HostFlow, host_flows
from tilewright.languages.kernel_bodies import KernelBody, kernel_bodies
from tilewright.languages.syntax import Module, parse_module

OTHER_PURPOSES = ("bench", "check", "get_init_inputs", "get_inputs", "main", "reference", "test")
"""How the names of functions begin that are no entry point of a candidate."""
TritonRule = Literal["paper_minimal", "strict"]


def is_triton(code: str, rule: TritonRule, entry: str = "") -> bool:
    """Tell whether a Python file is Triton by a rule; `False` for text that is no Python.

    `paper_minimal`: the file defines a Triton kernel and uses its name elsewhere.

    `strict`: an entry point launches a kernel that loads or stores, and the result depends on this
    launch. No computing operator of torch and no call of unknown code lies on the way to it.

    Without `entry` the entry point is `ModelNew`. If there is none, the rule holds for every
    function that computes and that nothing else in the file uses. Functions that are named like a
    reference or a test do not count.
    """
    module = parse_module("candidate.py", code)
    if not isinstance(module, Module):
        return False
    kernels = kernel_bodies(module)
    if rule == "paper_minimal":
        return any(_is_used(module, name) for name in kernels)
    flows = [flow for flow in host_flows(module, entry) if flow.on_output_path()]
    if not entry:
        flows = [flow for flow in flows if not flow.entry.lower().startswith(OTHER_PURPOSES)]
    return bool(flows) and all(_computes_in_kernels(flow, kernels) for flow in flows)


def _is_used(module: Module, kernel: str) -> bool:
    """Tell whether a name is read outside of the function that it names."""
    inside = {
        id(node)
        for function in module.nodes
        if isinstance(function, ast.FunctionDef) and function.name == kernel
        for node in ast.walk(function)
    }
    return any(
        id(node) not in inside
        and (
            (isinstance(node, ast.Name) and node.id == kernel and type(node.ctx) is ast.Load)
            or (isinstance(node, ast.Attribute) and node.attr == kernel)
        )
        for node in module.nodes
    )


def _computes_in_kernels(flow: HostFlow, kernels: Mapping[str, KernelBody]) -> bool:
    path = flow.on_output_path()
    launched = [step.name for step in path if step.kind == "launch"]
    if any(step.kind == "operator" for step in path):
        return False
    return any(kernels[name].pointers for name in launched if name in kernels)
