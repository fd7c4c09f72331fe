"""The result of a run in one sentence, for a terminal, a page and Markdown."""

from __future__ import annotations

from typing import Any

from tilewright.scoring.report_text import speed_text


def headline(summary: dict[str, Any]) -> str:
    """Return the sentence for a summary (`summary_of`), by its first protocol.

    Each number says of what it is a part. Problems without a candidate are counted apart.
    """
    candidates, answered, lacking = (
        summary[name] for name in ("candidates", "problems", "unanswered")
    )
    problems = f"{answered} of {answered + lacking} problems" if lacking else _count(answered)
    apart = f" ({lacking} {'has' if lacking == 1 else 'have'} none)" if lacking else ""
    head = f"{candidates} candidate{'s' * (candidates != 1)} for {problems}{apart}"
    protocols = summary["protocols"]
    if not protocols:
        return f"{head}: nothing was judged."
    name, numbers = next(iter(protocols.items()))
    said = _results(numbers, candidates)
    rule = f" by the rules of {name}" if len(protocols) > 1 else ""
    return f"{head}: {said}{rule}."


def _count(problems: int) -> str:
    return f"{problems} problem{'s' * (problems != 1)}"


def _results(numbers: dict[str, Any], candidates: int) -> str:
    judged = numbers["judged"]
    if not judged:
        return "none was judged"
    of = "" if judged == candidates else f" of {judged} that count"
    said = f"{numbers['correct']}{of} {'is' if numbers['correct'] == 1 else 'are'} correct"
    if not numbers["timed"]:
        return f"{said}, nothing was timed"
    faster, best = numbers["faster"], numbers["best"]
    said += f", {faster or 'none'} {'are' if faster > 1 else 'is'} measurably faster"
    if faster and best is not None:
        shown = speed_text(best["speedup"], best["low"], best["high"])
        said += f", the best {shown} ({best['problem']})"
    return said
