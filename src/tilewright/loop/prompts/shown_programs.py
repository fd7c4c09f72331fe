"""How prompts show programs, their measured speed, and documents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.loop.candidate_text import code_of
from tilewright.loop.estimates import Estimate
from tilewright.loop.prompts.material import Document, Material
from tilewright.records.events import Turn
from tilewright.scoring.report_text import ratio_text

MAX_REASON_CHARS = 400
TAGS = {"cuda": "cuda", "cpp": "cpp"}
"""Tags of fenced blocks, by language; all other languages are written in Python files."""


def fenced(code: str, tag: str = "python") -> str:
    """Return code in a fenced block that it cannot close itself."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{tag}\n{code.strip()}\n{fence}"


def standing(turn: Turn, estimate: Estimate) -> str:
    """Return one line on what is known about a program."""
    interval = estimate.interval
    if estimate.speedup is not None and interval is not None:
        count = len(estimate.trials)
        trials = f", {count} trials" if count > 1 else ""
        return f"Speed against eager PyTorch: {ratio_text(estimate.speedup, *interval)}{trials}"
    if not turn.judgements:
        return "Not judged yet."
    judgement = turn.judgements[0]
    if judgement.verdict == "correct":
        return "Correct; its speed was not measured."
    return f"Verdict: {judgement.verdict}. {judgement.reason[:MAX_REASON_CHARS]}".strip()


def program(turn: Turn, estimate: Estimate) -> str:
    """Return a program with the line about it."""
    return f"{standing(turn, estimate)}\n{fenced(code_of(turn), TAGS.get(turn.language, 'python'))}"


def worst_first(material: Material, turns: Sequence[Turn]) -> list[Turn]:
    """Return turns by speed, slowest first; those without a speed come before all others."""
    return sorted(turns, key=lambda turn: material.estimate(turn).speedup or 0.0)


def notes(documents: Sequence[Document]) -> str:
    """Return documents as one block; empty without any."""
    if not documents:
        return ""
    texts = [f"## {item.title}\n{item.text.strip()}" for item in documents]
    return "# Notes that may help\n\n" + "\n\n".join(texts)
