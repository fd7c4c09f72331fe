"""The description of a library: the call of each operator, and operators that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.audit.operators import Operator

TEMPLATE = """{before}{imports}


def work({names}):
    {body}
"""


@dataclass(frozen=True)
class Call:
    """How a library is called for an operator of the audit."""

    operator: str
    imports: str
    """Lines above the function `work`."""
    body: str
    backward: bool = False
    """Whether the operator is judged again together with its backward pass."""
    note: str = ""
    """A remark for readers of the figures."""


@dataclass(frozen=True)
class NotJudged:
    """An operator of a library that the audit leaves out, and why."""

    operator: str
    reason: str


@dataclass(frozen=True)
class Claim:
    """A claim of a library about its own speed, in its words, with the source."""

    text: str
    source: str


@dataclass(frozen=True)
class Library:
    """A library: the distribution, the version that the adapter was written for, its operators."""

    name: str
    version: str
    module: str
    """The module by which it is imported."""
    calls: tuple[Call, ...]
    not_judged: tuple[NotJudged, ...] = ()
    claims: tuple[Claim, ...] = ()
    needs: tuple[str, ...] = ()
    """Modules of other distributions that it imports."""
    language: str = "triton"
    before: str = ""
    """Lines above all imports, such as variables by which the library finds its device."""


def candidate_text(library: Library, call: Call, operator: Operator, first: Sequence[str]) -> str:
    """Return the candidate of a cell as source text; the lines of `first` come before all."""
    before = "".join(f"{line}\n" for line in first) + library.before
    return TEMPLATE.format(
        before=before, imports=call.imports, names=operator.names, body=call.body
    )
