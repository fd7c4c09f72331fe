"""A digest of changes that were tried on a program, and of what each led to.

KernelEvolve lets a model write this digest (arXiv 2512.23236, section on context). Here it follows
from the programs alone: the lines that a change removed and added, and the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MAX_LINES = 3
"""Removed lines, and added lines, that the digest shows of a change: more describe a rewrite."""
MAX_LINE_CHARS = 100
"""Characters of a line, so that one long line does not fill the prompt."""
MAX_REASON_CHARS = 120
"""Characters of the reason why a program failed."""
MAX_CHANGES = 8
"""Changes in a digest, the newest ones: a prompt has room for other parts."""


def change_between(before: str, after: str) -> str:
    """Return one line on how a program differs from its parent: its lines, in their order."""
    old, new = _lines(before), _lines(after)
    removed, added = _surplus(old, new), _surplus(new, old)
    if not removed and not added:
        return "the same lines in another order"
    if len(removed) == len(added) <= MAX_LINES:
        return ", ".join(
            f"{_quoted(one)} -> {_quoted(other)}" for one, other in zip(removed, added, strict=True)
        )
    parts = [("removed", removed), ("added", added)]
    return "; ".join(f"{verb} {_listed(lines)}" for verb, lines in parts if lines)


def outcome_line(verdict: str, speedup: float | None, before: float | None, reason: str) -> str:
    """Return what a change led to: the speed-up after and before, or why it failed."""
    if verdict != "correct":
        return f"{verdict}, {' '.join(reason[:MAX_REASON_CHARS].split())}".rstrip(", ")
    if speedup is None:
        return "correct"
    return f"{speedup:.2f}x" if before is None else f"{speedup:.2f}x after {before:.2f}x"


def digest(path: Sequence[str], tried: Sequence[str]) -> str:
    """Return the digest: the changes that led to a program, and those that were tried on it."""
    parts = []
    if path:
        parts.append(_block("Changes that led to the current program, oldest first:", path))
    if tried:
        parts.append(
            _block("Changes to the current program that were tried. Try another one:", tried)
        )
    return "\n\n".join(parts)


def _block(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((heading, *(f"- {line}" for line in lines[-MAX_CHANGES:])))


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


def _surplus(lines: list[str], others: list[str]) -> list[str]:
    """Return the lines that occur more often than among the others, in their order."""
    left = Counter(others)
    found = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            found.append(line)
    return found


def _quoted(line: str) -> str:
    return f"`{line[:MAX_LINE_CHARS]}`"


def _listed(lines: list[str]) -> str:
    text = ", ".join(map(_quoted, lines[:MAX_LINES]))
    rest = len(lines) - MAX_LINES
    return f"{text} and {rest} more" if rest > 0 else text
