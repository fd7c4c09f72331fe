"""The page of the HTTP endpoints, from the OpenAPI document of the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

HEAD = """# HTTP

The endpoints of `tilewright serve` ([guide](../guides/serve.md)).
The OpenAPI description is [openapi.json](schema/openapi.json).
A server returns it at `/openapi.json`, and shows it at `/docs`.
An error response has the body `{"detail": ...}`.
"""
Rows = list[tuple[str, ...]]


def page(
    document: dict[str, Any], table: Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]
) -> str:
    """Return the page: the endpoints of tilewright, those of KernelGYM, and the refusals."""
    ours, gym = Rows(), Rows()
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            meaning = " ".join(found["description"].split("\n\n")[0].split())
            (gym if found.get("tags") else ours).append((f"`{method.upper()} {path}`", meaning))
    answers = document["paths"]["/v1/tasks"]["post"]["responses"]
    refusals = [(code, row["description"]) for code, row in answers.items() if code >= "400"]
    head = ("endpoint", "meaning")
    parts = {
        "API of tilewright": table(head, ours),
        "API of KernelGYM": table(head, gym),
        "Error responses": table(("status", "meaning"), refusals),
    }
    sections = (f"\n## {title}\n\n{text.rstrip()}\n" for title, text in parts.items())
    return HEAD + "".join(sections)
