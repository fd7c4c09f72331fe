"""The defect of published rules that explains a disagreement of two protocols. Pure.

K1 to K7 are defects of KernelBench-X's scripts, B1 to B7 of KernelBench's. A defect of both goes by
either name. A cause without a letter is a rule that they lack. The other defects change no verdict
here. B4 leaves problems out of strict scores, and K5 leaves tasks out of speed-ups. No protocol
repeats the rest.
"""

from __future__ import annotations

import re

from tilewright.records.events import EvalSummary

__all__ = ["cause_of", "kind_of"]

ABSOLUTE = "B3: the published tolerance is absolute, so that of small outputs it asks little"
UNGUARDED = "B5: published timing compares no output and sees no work beside the call"
RMSE = "K2: the published threshold of quantization is absolute, whatever the outputs' size"
TIGHT = "the published tolerance is absolute, so that of large outputs it asks more than is exact"
OTHER_INPUTS = "published rules draw inputs of one kind and of the declared sizes alone"
OVERWRITTEN = "published rules do not look at inputs after a call"
WEIGHTS = "published rules never load other weights"
OWN_WORK = "published rules do not ask whose work it is"
FORM = "the published comparison does not look at the form of outputs"
ENDED = "it failed under one protocol alone, which calls it with other inputs and more often"

BY_FINDING = {
    "aliased_output": UNGUARDED,
    "incorrect_when_timed": UNGUARDED,
    "untimed_work": UNGUARDED,
    "baseline_interference": UNGUARDED,
    "input_mutation": OVERWRITTEN,
    "weights_constant_folded": WEIGHTS,
    "unused_kernel": OWN_WORK,
    "label_denied": OWN_WORK,
}
BY_KIND = {
    "mutation": OVERWRITTEN,
    "weights": WEIGHTS,
    "count": FORM,
    "shape": FORM,
    "dtype": FORM,
}
REASON = re.compile(r"(?P<kind>[a-z ]+) \((?P<place>.*?, [\w ]+)\): ")


def kind_of(judgement: EvalSummary) -> str:
    """Return what kind of failure a judgement is, as its reason begins; empty for other verdicts.

    `values` or `shape` of an incorrect output; `timeout in load` of a failed candidate.
    """
    if judgement.verdict == "incorrect":
        # Of a hundred thousand: a pattern takes several times as long.
        kind, place, _ = judgement.reason.partition(" (")
        return kind if place else ""
    if judgement.verdict == "failed":
        kind, colon, _ = judgement.reason.partition(": ")
        return kind if colon else ""
    return ""


def cause_of(problem: str, published: EvalSummary, strict: EvalSummary) -> str:
    """Return why the published rules and ours disagree on an answer to a problem; empty: unknown.

    Args:
        problem: its id, which begins with the set's name.
        published: the verdict by the rules of the benchmark, judged.
        strict: ours, judged, and another.
    """
    if published.verdict == "correct":
        return _let_pass(strict)
    if strict.verdict != "correct":
        return ""
    kind = kind_of(published)
    if kind in ("values", "nonfinite"):
        return RMSE if problem.startswith("kernelbenchx/Quantization/") else TIGHT
    return ENDED if published.verdict == "failed" else ""


def _let_pass(strict: EvalSummary) -> str:
    """Return why published rules accept what ours refuse."""
    if strict.verdict == "rejected":
        return next((BY_FINDING[name] for name in strict.findings if name in BY_FINDING), "")
    if strict.verdict == "failed":
        return ENDED
    found = REASON.match(strict.reason)
    if found is None or found["kind"] in BY_KIND:
        return BY_KIND[found["kind"]] if found else ""
    case, _, contents = found["place"].rpartition(", ")
    if contents == "timed":
        return UNGUARDED
    return OTHER_INPUTS if contents != "nominal" or case.startswith("hidden ") else ABSOLUTE
