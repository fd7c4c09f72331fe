"""The defect of published rules that explains a disagreement of two protocols. Pure.

K1 to K7 are defects of KernelBench-X's scripts, B1 to B7 of KernelBench's. A defect of both goes by
either name. A cause without a letter is a rule that they lack. The other defects change no verdict
here. B4 leaves problems out of strict scores, and K5 leaves tasks out of speed-ups. No protocol
repeats the rest.
"""

from __future__ import annotations

from tilewright.records.codes import FindingCode, IncorrectKind, InputOrigin
from tilewright.records.events import EvalSummary

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

BY_FINDING: dict[str, str] = {
    FindingCode.ALIASED_OUTPUT: UNGUARDED,
    FindingCode.MISPLACED_OUTPUT: UNGUARDED,
    FindingCode.INCORRECT_WHEN_TIMED: UNGUARDED,
    FindingCode.STALE_AFTER_FIRST_CALL: OTHER_INPUTS,
    FindingCode.UNTIMED_WORK: UNGUARDED,
    FindingCode.BASELINE_INTERFERENCE: UNGUARDED,
    FindingCode.INPUT_MUTATION: OVERWRITTEN,
    FindingCode.WEIGHTS_CONSTANT_FOLDED: WEIGHTS,
    FindingCode.UNUSED_KERNEL: OWN_WORK,
    FindingCode.LABEL_DENIED: OWN_WORK,
}
BY_KIND: dict[str | None, str] = {
    IncorrectKind.MUTATION: OVERWRITTEN,
    IncorrectKind.WEIGHTS: WEIGHTS,
    IncorrectKind.COUNT: FORM,
    IncorrectKind.SHAPE: FORM,
    IncorrectKind.DTYPE: FORM,
}
BY_INPUTS = {
    InputOrigin.TIMED: UNGUARDED,
    InputOrigin.HIDDEN_SIZE: OTHER_INPUTS,
    InputOrigin.VARIED: OTHER_INPUTS,
    InputOrigin.NOMINAL: ABSOLUTE,
}


def kind_of(judgement: EvalSummary) -> str:
    """Return `values` or `shape` of an incorrect output, `timeout in load` of a failure, else "".

    Logs that recorded no codes give "" too.
    """
    if judgement.code is None or judgement.verdict not in ("incorrect", "failed"):
        return ""
    return f"{judgement.code} in {judgement.stage}" if judgement.stage else str(judgement.code)


def cause_of(problem: str, published: EvalSummary, strict: EvalSummary) -> str:
    """Return why the published rules and ours disagree on an answer; empty: unknown.

    `problem` is an id, which begins with the set's name. Both verdicts are judged, and they differ.
    """
    if published.verdict == "correct":
        return _let_pass(strict)
    if strict.verdict != "correct":
        return ""
    if published.code in (IncorrectKind.VALUES, IncorrectKind.NONFINITE):
        return RMSE if problem.startswith("kernelbenchx/Quantization/") else TIGHT
    return ENDED if published.verdict == "failed" else ""


def _let_pass(strict: EvalSummary) -> str:
    """Return why published rules accept what ours refuse."""
    if strict.verdict == "rejected":
        return next((BY_FINDING[name] for name in strict.findings if name in BY_FINDING), "")
    if strict.verdict == "failed":
        return ENDED
    if strict.code in BY_KIND:
        return BY_KIND[strict.code]
    return BY_INPUTS[strict.inputs] if strict.inputs else ""
