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
    problems = (
        f"{answered} of {answered + lacking} problems" if lacking else counted(answered, "problem")
    )
    apart = f" ({lacking} {'has' if lacking == 1 else 'have'} none)" if lacking else ""
    noun = "turn" if summary["earlier_turns"] else "candidate"
    head = f"{counted(candidates, noun)} for {problems}{apart}"
    protocols = summary["protocols"]
    if not protocols:
        return f"{head}: nothing was judged."
    name, numbers = next(iter(protocols.items()))
    said = _results(numbers, candidates, summary["earlier_turns"])
    rule = f" by the rules of {name}" if len(protocols) > 1 else ""
    return f"{head}: {said}{rule}."


def denominator(numbers: dict[str, Any]) -> str:
    """Return what the shares of a protocol's numbers are shares of."""
    total, lacking = numbers["problems"], numbers["unanswered"]
    with_some = f"{counted(numbers['judged'], 'candidate')} for {total - lacking} of them"
    apart = f": {with_some}, and {lacking} without one, which count as 0" if lacking else ""
    return f"{counted(total, 'problem')}{apart}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else several}"


def _results(numbers: dict[str, Any], candidates: int, earlier_turns: int) -> str:
    judged = numbers["judged"]
    if not judged:
        return "none was judged"
    of = "" if judged == candidates or earlier_turns else f" of {judged} that count"
    where = ""
    if earlier_turns:
        all_turns = numbers["correct_turns"]
        where = f"{all_turns or 'none'} {'are' if all_turns > 1 else 'is'} correct; "
        where += f"at the last turn of {counted(judged, 'trajectory')} "
    said = f"{where}{numbers['correct']}{of} {'is' if numbers['correct'] == 1 else 'are'} correct"
    if not numbers["timed"]:
        return f"{said}, nothing was timed"
    faster, best = numbers["faster"], numbers["best"]
    said += f", {faster or 'none'} {'are' if faster > 1 else 'is'} measurably faster"
    if faster and best is not None:
        said += (
            f", the best of them {_speed(best)}" if earlier_turns else f", the best {_speed(best)}"
        )
    overall = numbers["best_of_all_turns"]
    if earlier_turns and overall is not None and overall != best:
        said += f"; the best of all turns: {_speed(overall)}"
    return said


def _speed(best: dict[str, Any]) -> str:
    return f"{speed_text(best['speedup'], best['low'], best['high'])} ({best['problem']})"
