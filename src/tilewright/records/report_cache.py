"""A content-addressed store of reports. The key is a digest of the work, not an id of a caller."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.errors import RecordError
from tilewright.records.base import digest_text
from tilewright.records.report import EvalReport, ReportEnvironment
from tilewright.records.request import EvalRequest


def work_key(request: EvalRequest, environment: ReportEnvironment, version: str) -> str:
    """Return the key of a request: a digest of its content, the environment and the version.

    The seed is not part of it: verdicts under different secret seeds are interchangeable.
    """
    asked = request.model_copy(update={"seed": None})
    return digest_text("\n".join([asked.digest(), environment.digest(), version]))


def lookup(home: Path, key: str) -> EvalReport | None:
    """Return the stored report of `key`; `None` if it is absent or damaged."""
    try:
        return EvalReport.from_json(_path(home, key).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecordError):
        return None


def remember(home: Path, key: str, report: EvalReport) -> None:
    """Store a report under `key`. An `unjudged` one is never stored.

    Raises:
        OSError: the store cannot be written.
    """
    if report.verdict == "unjudged":
        return
    path = _path(home, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(report.to_json(), encoding="utf-8")
    fresh.replace(path)


def _path(home: Path, key: str) -> Path:
    return home / "reports" / key[:2] / f"{key}.json"
