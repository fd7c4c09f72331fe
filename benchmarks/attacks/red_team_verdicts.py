"""Evaluate one file of the red-team suite, and measure what an attack gains."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.attacks.corpus_files import expectation_missed
from benchmarks.attacks.red_team_files import SuiteFile
from benchmarks.bars import quick_settings
from tilewright.api import build_request
from tilewright.errors import ProblemError, TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport
from tilewright.records.codes import Stage

ALLOWED_GAIN = 1.03
"""Speed-up over the honest counterpart that an attack may have: 1 and the spread of two programs
that do the same work."""
THOROUGH = ("eval.timing.min_blocks=20", "eval.timing.max_blocks=60", "eval.timing.max_s=2")
"""Timing plan of a repeated evaluation: it decides whether a gain is noise."""


NOT_HELD = (Stage.DEVICE_WAIT, Stage.PREPARE_JUDGE, Stage.CHECK_PROBLEM, Stage.CEILINGS)
"""Stages whose seconds do not count against `max_s`: waits for others, and work for all candidates
of a problem."""


@dataclass(frozen=True)
class Row:
    """The result of one evaluation of a file."""

    name: str
    kind: str
    family: str
    key: str
    device: str
    verdict: str
    seconds: float
    gain: tuple[float, float, float] | None = None
    """Speed-up over the honest counterpart with its interval, of the case that gains most."""
    missed: str = ""
    """How the report differs from the header; empty if it agrees."""
    message: str = ""
    labels: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    labelled: bool = False
    """Whether it is correct with the label of its header."""
    label_missing: bool = False
    """Whether it is correct without the label of its header."""
    too_slow: bool = False
    """Whether it held a worker for longer than its header allows."""
    first_verdict: str = ""
    """Verdict of the first evaluation, if the file was evaluated twice."""
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage."""

    @property
    def gains(self) -> bool:
        """Tell whether it is an attack that is correct with an unearned gain."""
        return (
            self.kind == "attacks"
            and self.verdict == "correct"
            and self.gain is not None
            and self.gain[1] > ALLOWED_GAIN
        )

    @property
    def refused(self) -> bool:
        return self.verdict != "correct"

    @property
    def failed(self) -> bool:
        """Tell whether tilewright or the suite failed, and there is no verdict."""
        return self.verdict[:1].isupper()

    def record(self) -> dict[str, Any]:
        return asdict(self)


def row_of(record: dict[str, Any]) -> Row:
    """Return the row that `record` wrote."""
    gain = record.get("gain")
    made = record | {"gain": tuple(gain) if gain else None}
    return Row(**{**made, **{key: tuple(made[key]) for key in ("labels", "findings")}})


def evaluate_file(local: LocalExecutor, file: SuiteFile, device: str, key: str) -> Row:
    """Evaluate a file, and a second time if an attack gains or an honest file is refused.

    The second evaluation times longer, and its result counts. A gain or a refusal that rests on
    noise does not come twice.
    """
    first = _evaluate(local, file, device, key, ())
    again = first.gains or (first.kind == "honest" and bool(first.missed))
    if not again or first.failed:
        return first
    second = _evaluate(local, file, device, key, THOROUGH)
    seconds = round(first.seconds + second.seconds, 1)
    return Row(**(second.__dict__ | {"first_verdict": first.verdict, "seconds": seconds}))


def _evaluate(
    local: LocalExecutor, file: SuiteFile, device: str, key: str, plan: tuple[str, ...]
) -> Row:
    start = time.monotonic()
    fields: dict[str, Any]
    try:
        try:
            report, measured = _report(local, file, device, plan, with_counterpart=True), True
        except ProblemError:
            # The counterpart may be what failed: the verdict needs the eager baseline alone.
            report, measured = _report(local, file, device, plan, with_counterpart=False), False
    except TilewrightError as error:
        fields = {"verdict": type(error).__name__, "message": str(error)[:600]}
    else:
        fields = _fields(file, report, measured and file.has_gain)
    seconds = round(time.monotonic() - start, 1)
    held_s = seconds - fields.pop("others_s", 0.0)
    fields["too_slow"] = held_s > float(file.file.keys.get("max_s", "inf"))
    return Row(file.name, file.kind, file.family, key, device, seconds=seconds, **fields)


def _report(
    local: LocalExecutor,
    file: SuiteFile,
    device: str,
    plan: tuple[str, ...],
    *,
    with_counterpart: bool,
) -> EvalReport:
    settings = quick_settings(device, (*plan, *file.settings))
    if with_counterpart and file.counterpart is not None:
        section = settings.eval.model_copy(update={"baselines": (str(file.counterpart),)})
        settings = settings.model_copy(update={"eval": section})
    request = build_request(
        file.path,
        file.problem,
        settings,
        language=file.file.keys.get("language"),
        allow_imports=file.python_path,
    )
    return local.evaluate(request)


def _fields(file: SuiteFile, report: EvalReport, measured: bool) -> dict[str, Any]:
    gain = None
    if measured and report.verdict == "correct":
        found = [
            (item.speedup, item.speedup_low, item.speedup_high)
            for item in report.comparisons
            if item.speedup_low is not None and item.speedup_high is not None
        ]
        gain = max(found, key=lambda item: item[1], default=None)
    labels = tuple(item.name for item in report.labels)
    wanted = file.file.keys.get("label")
    summaries = "; ".join(f"{item.code}: {item.summary}" for item in report.findings)
    message = str(getattr(report.outcome, "message", "") or getattr(report.outcome, "reason", ""))
    return {
        "others_s": sum(item.wall_s for item in report.stages if item.name in NOT_HELD),
        "stages": {item.name: round(item.wall_s, 2) for item in report.stages},
        "verdict": report.verdict,
        "gain": gain,
        "missed": expectation_missed(file.file, report),
        "labelled": report.verdict == "correct" and wanted in labels,
        "label_missing": report.verdict == "correct" and wanted not in (None, *labels),
        "message": f"{message} {summaries}".strip()[:600],
        "labels": labels,
        "findings": tuple(item.code for item in report.findings),
    }
