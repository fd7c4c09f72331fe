"""Judges GPU kernels with verdicts that can be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright._version import __version__

if TYPE_CHECKING:
    from tilewright.api import evaluate, evaluate_async
    from tilewright.client import Client
    from tilewright.records import Candidate, EvalReport, EvalRequest, Problem

__all__ = [
    "Candidate",
    "Client",
    "EvalReport",
    "EvalRequest",
    "Problem",
    "__version__",
    "evaluate",
    "evaluate_async",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    """Import a public name on first use, so that `import tilewright` stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    import importlib

    homes = {"evaluate": "api", "evaluate_async": "api", "Client": "client"}
    home = homes.get(name, "records")
    return getattr(importlib.import_module(f"tilewright.{home}"), name)


def __dir__() -> list[str]:
    """Return the public names, so that a REPL and a notebook complete them."""
    return sorted(__all__)
