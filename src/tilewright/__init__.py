"""Judges GPU kernels with verdicts that can be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright._version import __version__

if TYPE_CHECKING:
    from tilewright.api import evaluate, evaluate_async
    from tilewright.records import Candidate, EvalReport, EvalRequest, Problem

__all__ = [
    "Candidate",
    "EvalReport",
    "EvalRequest",
    "Problem",
    "__version__",
    "evaluate",
    "evaluate_async",
]

_HOMES = {
    "Candidate": "tilewright.records",
    "EvalReport": "tilewright.records",
    "EvalRequest": "tilewright.records",
    "Problem": "tilewright.records",
    "evaluate": "tilewright.api",
    "evaluate_async": "tilewright.api",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    """Import a public name on first use, so that `import tilewright` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
