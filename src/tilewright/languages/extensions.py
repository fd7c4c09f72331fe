"""Calls of torch's extension builders in Python source, and whether they build CUDA."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tilewright.languages.syntax import Module, calls, literal_text

_BUILDERS = {
    "torch.utils.cpp_extension.load_inline": "load_inline",
    "torch.utils.cpp_extension.load": "load",
}
_CUDA_SOURCES_PLACE = 2
"""Position of the CUDA sources in `load_inline(name, cpp_sources, cuda_sources)`."""


class ExtensionCall(NamedTuple):
    """One call of `load_inline` or `load`."""

    builder: str
    cuda: bool
    line: int


def extension_calls(module: Module) -> tuple[ExtensionCall, ...]:
    """Return the calls in the file that build a C++ or CUDA extension, by line.

    `load_inline` builds CUDA if it gets CUDA sources. `load` counts as CUDA if the file names a
    `.cu` file anywhere, because programs often assemble the list of sources elsewhere.
    """
    found = []
    for call in calls(module):
        builder = extension_builder(module, call)
        if builder is not None:
            cuda = _inline_cuda(call) if builder == "load_inline" else _names_cuda_file(module)
            cuda = cuda or _truthy_keyword(call, "with_cuda") or _spread_cuda(module, call)
            found.append(ExtensionCall(builder, cuda, call.lineno))
    return tuple(sorted(found, key=lambda each: each.line))


def extension_builder(module: Module, call: ast.Call) -> str | None:
    """Return `load_inline` or `load` if the call is one of torch's."""
    return _BUILDERS.get(module.dotted(call.func) or "")


def _names_cuda_file(module: Module) -> bool:
    return any((literal_text(node) or "").endswith(".cu") for node in module.nodes)


def _inline_cuda(call: ast.Call) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if not starred and len(call.args) > _CUDA_SOURCES_PLACE:
        return not _empty(call.args[_CUDA_SOURCES_PLACE])
    return _truthy_keyword(call, "cuda_sources")


def _truthy_keyword(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name and not _empty(keyword.value) for keyword in call.keywords)


def _spread_cuda(module: Module, call: ast.Call) -> bool:
    """Tell whether arguments hidden behind `**options` may hold CUDA sources."""
    return any(keyword.arg is None for keyword in call.keywords) and any(
        (isinstance(node, ast.keyword) and node.arg == "cuda_sources")
        or (isinstance(node, ast.Constant) and node.value == "cuda_sources")
        for node in module.nodes
    )


def _empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return not node.value
    return isinstance(node, ast.List | ast.Tuple) and not node.elts
