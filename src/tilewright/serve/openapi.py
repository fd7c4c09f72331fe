"""The OpenAPI document and the list of endpoints, made without a running server."""

from __future__ import annotations

from typing import Any

from tilewright.serve.app import describe
from tilewright.serve.kernelgym import add_kernelgym

__all__ = ["HEAD", "openapi", "tables"]

HEAD = """# HTTP

The endpoints of `tilewright serve` ([guide](../guides/serve.md)).
The OpenAPI description is [openapi.json](schema/openapi.json).
A server returns it at `/openapi.json`, and shows it at `/docs`.
An error response has the body `{"detail": ...}`.

"""

Rows = list[tuple[str, ...]]


def openapi() -> dict[str, Any]:
    """Return the document that a server gives at `/openapi.json`."""
    app = describe()
    add_kernelgym(app)
    return app.openapi()


def tables() -> dict[str, tuple[tuple[str, str], Rows]]:
    """Return the tables of the page by title: our endpoints, KernelGYM's, and the refusals."""
    document, ours, gym = openapi(), Rows(), Rows()
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            meaning = " ".join(found["description"].split("\n\n")[0].split())
            (gym if found.get("tags") else ours).append((f"`{method.upper()} {path}`", meaning))
    answers = document["paths"]["/v1/tasks"]["post"]["responses"]
    refusals: Rows = [(code, row["description"]) for code, row in answers.items() if code >= "400"]
    head = ("endpoint", "meaning")
    return {
        "API of tilewright": (head, ours),
        "API of KernelGYM": (head, gym),
        "Error responses": (("status", "meaning"), refusals),
    }
