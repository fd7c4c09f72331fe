"""Feedback to a model about a verdict. It reveals no seed, no tolerance and no path.

The preset `tilewright` is our own. `paper` has the three cases of the template in Dr. Kernel (arXiv
2602.05885). `released_code` has the fields that the code released with that paper shows, with the
scalar reward.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.records import EvalReport, Failed, Incorrect, Rejected
from tilewright.records.events import EvalSummary
from tilewright.scoring.benchmarks.kernelgym import runtimes
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.report_text import failure_text, short_time, speed_text

CHARACTERS_PER_TOKEN = 4
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+\-]+/)+([\w.+\-]+)")
_SECRET = re.compile(r"(?<![\w.])[0-9a-f]{16,}\b")
_ALLOWED = re.compile(r"; error [\d.e+\-]+ times the allowed one")
MAX_PRINTED_CHARS = 400
CUT = "\n[...]\n"


@dataclass(frozen=True)
class JudgedAnswer:
    """A judged answer."""

    judgement: EvalSummary
    report: EvalReport | None
    """`None` if the answer held no candidate, or was not judged."""
    reward: float | None


def redacted(text: str) -> str:
    """Return a text without folders, long hexadecimal words and tolerances."""
    plain = "".join(char for char in text if char.isprintable() or char in "\n\t")
    return _ALLOWED.sub("", _SECRET.sub("[...]", _PATH.sub(r"\1", plain)))


def feedback(answer: JudgedAnswer, preset: str, tokens: int) -> str:
    """Return the feedback of a preset, in at most about `tokens` tokens."""
    blocks = FEEDBACK[preset](answer)
    return _fitted([redacted(block) for block in blocks if block], tokens * CHARACTERS_PER_TOKEN)


def _fitted(blocks: Sequence[str], most: int) -> str:
    """Drop the last blocks until the others fit; if one is too long, cut it in its middle."""
    kept = list(blocks)
    while len(kept) > 1 and len("\n\n".join(kept)) > most:
        kept.pop()
    return shortened("\n\n".join(kept), most)


def shortened(text: str, most: int) -> str:
    """Return a text, cut in its middle if too long: the ends of a traceback say the most."""
    half = (most - len(CUT)) // 2
    return text if len(text) <= most else text[:half] + CUT + text[-half:]


def _tilewright(answer: JudgedAnswer) -> list[str]:
    """Return the verdict, then its explanation, then advice: the most important block first."""
    judgement, report = answer.judgement, answer.report
    if judgement.verdict == "unjudged":
        return ["This answer could not be judged, which is not its fault."]
    if report is None:
        return [f"Verdict: failed. {judgement.reason}"]
    match report.outcome:
        case Failed() as failed:
            what = f"Verdict: failed ({failure_text(failed)})."
            return [f"{what}\n{failed.message}", _printed(report)]
        case Incorrect() as wrong:
            what = f"Verdict: incorrect ({wrong.kind}). First wrong: {wrong.case}."
            right = dict.fromkeys(item.case for item in report.cases if item.result == "pass")
            so_far = f"Right so far: {', '.join(right)}." if right else ""
            return [f"{what}\n{wrong.message}", so_far, _printed(report)]
        case Rejected() as rejected:
            found = "\n".join(f"- {item.summary}" for item in rejected.findings)
            return [f"Verdict: rejected. It did not do the work that it was asked for:\n{found}"]
        case _:
            pass
    lines = [f"- {item.name}: {item.detail}" for item in report.labels]
    labels = "Noted:\n" + "\n".join(lines) if lines else ""
    return [_speed(report), _cases(report), labels, "\n".join(advice(report))]


def _speed(report: EvalReport) -> str:
    if report.speedup is None:
        return "Verdict: correct. Its speed was not measured."
    text = speed_text(report.speedup, report.speedup_low, report.speedup_high)
    against = report.comparisons[0].baseline if report.comparisons else "eager"
    return f"Verdict: correct. Speed against {against} PyTorch: {text} (95 % interval)."


def _cases(report: EvalReport) -> str:
    lines = []
    for item in report.comparisons:
        shown = paired_times(item)
        candidate, baseline = short_time(shown.candidate_us), short_time(shown.baseline_us)
        text = speed_text(item.speedup, item.speedup_low, item.speedup_high)
        lines.append(f"- {item.case}: {candidate}, {item.baseline} {baseline}: {text}")
    return "\n".join(lines)


def _printed(report: EvalReport) -> str:
    text = report.candidate_output.strip()
    return f"It printed:\n{text[-MAX_PRINTED_CHARS:]}" if text else ""


def _paper(answer: JudgedAnswer) -> list[str]:
    speedup, report = answer.judgement.speedup, answer.report
    if answer.judgement.verdict != "correct":
        return [f"There was an error.\n{_message(answer)}"]
    if speedup is None or speedup <= 1.0:
        speed = f"{speedup:.2f}x" if speedup else "not measured"
        return [f"Correct, but not faster than the reference ({speed})."]
    profile = report.profile if report is not None else None
    covered = "" if profile is None else f" {profile.coverage:.0%} of it is your kernels."
    return [f"Correct, and {speedup:.2f}x as fast as the reference.{covered}"]


def _message(answer: JudgedAnswer) -> str:
    outcome = answer.report.outcome if answer.report is not None else None
    return str(getattr(outcome, "message", "")) or answer.judgement.reason


def _released_code(answer: JudgedAnswer) -> list[str]:
    judgement, report = answer.judgement, answer.report
    times = runtimes(report) if report is not None else None
    profile = report.profile if report is not None else None
    fields = {
        "status": "failed" if judgement.verdict in ("failed", "unjudged") else "completed",
        "compiled": judgement.verdict in ("correct", "incorrect", "rejected"),
        "correctness": judgement.verdict == "correct",
        "decoy_kernel": judgement.verdict == "rejected",
        "reference_runtime": times.reference_ms if times else None,
        "kernel_runtime": times.kernel_ms if times else None,
        "speedup": times.speedup if times else judgement.speedup or 0.0,
        "metadata": {
            "hardware": report.environment.device_name if report is not None else "",
            "num_custom_kernels": profile.launches if profile else None,
            "time_coverage": judgement.coverage,
        },
        # Redacted before it is quoted: a quoted line break would hide the start of a path.
        "error_message": redacted(_message(answer)) if judgement.verdict != "correct" else "",
        "reward": answer.reward,
    }
    return [f"This is the server's answer:\n\n{json.dumps(fields, indent=2)}"]


FEEDBACK: dict[str, Callable[[JudgedAnswer], list[str]]] = {
    "tilewright": _tilewright,
    "paper": _paper,
    "released_code": _released_code,
}
