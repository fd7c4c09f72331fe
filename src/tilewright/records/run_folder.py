"""Files of reports: run folders, and the store of reports by the content of their requests."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from tilewright.errors import NO_ROOM, ConfigError, DiskFull, RecordError, reason_of, writing
from tilewright.records.base import digest_text
from tilewright.records.report import EvalReport, ReportEnvironment
from tilewright.records.request import EvalRequest

REPORT = "report.json"
PROBLEMS = "problems.jsonl"


def create_run(parent: Path, settings: str) -> Path:
    """Make a new run folder in `parent` with the resolved settings in `run.yaml`."""
    folder: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = _make_unused(parent)
        (folder / "run.yaml").write_text(settings, encoding="utf-8")
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        kind = DiskFull if error.errno in NO_ROOM else ConfigError
        raise kind(
            f"{parent}: no run folder can be made in it: {reason_of(error)}; "
            "name another folder with --out"
        ) from error
    return folder


def _make_unused(parent: Path) -> Path:
    """Make a folder with a name that no other run has: hundreds may begin in one second."""
    while True:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        folder = parent / f"{stamp}-{secrets.token_hex(2)}"
        with suppress(FileExistsError):
            folder.mkdir()
            return folder


@contextmanager
def fresh_run(parent: Path, settings: str) -> Iterator[Path]:
    """Create a run folder, as `create_run` does. Remove it if an error left nothing in it."""
    folder = create_run(parent, settings)
    try:
        yield folder
    except BaseException:
        if [item.name for item in folder.iterdir()] == ["run.yaml"]:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def write_report(folder: Path, report: EvalReport) -> Path:
    """Write a report and its sources into a run folder; return the report's path."""
    path = folder / REPORT
    fresh = folder / f"{REPORT}.new"
    with writing(path):
        fresh.write_text(report.to_json(indent=1), encoding="utf-8")
        fresh.replace(path)
        (folder / "environment.json").write_text(
            report.environment.to_json(indent=1), encoding="utf-8"
        )
        for file in report.request.candidate.files:
            target = folder / "candidate" / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
    return path


def save(folder: Path, report: EvalReport, home: Path) -> str | None:
    """Write a report, or write it under `home` if that fails. Return the error, if any."""
    try:
        write_report(folder, report)
    except ConfigError as error:
        rescue = home / "rescued" / folder.name
        try:
            rescue.mkdir(parents=True, exist_ok=True)
            write_report(rescue, report)
        except (ConfigError, OSError):
            return f"{error}; the report was not stored anywhere"
        return f"{error}; the report was written to {rescue} instead"
    return None


def read_report(path: Path) -> EvalReport:
    """Read the report in a run folder, or the report file itself.

    Raises:
        RecordError: there is no report, or it is damaged or of a newer schema.
    """
    file = path / REPORT if os.path.isdir(path) else path
    try:
        text = file.read_text(encoding="utf-8")
        json.loads(text)
        return EvalReport.from_json(text)
    except OSError as error:
        raise RecordError(f"{path}: {_no_report(path, error)}") from error
    except (ValueError, RecursionError) as error:
        text = f"damaged: {reason_of(error)}; evaluate the candidate again"
        raise RecordError(f"{file}: {text}") from error
    except RecordError as error:
        raise RecordError(f"{file}: {error}") from error


def _no_report(path: Path, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"cannot be read: {reason_of(error)}"
    what = f"it has no {REPORT}" if os.path.isdir(path) else "no such run or report"
    return f"{what}; name a run folder of eval, or its {REPORT}"


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
    """Store a report under `key`, or raise `OSError`. An `unjudged` one is never stored."""
    if report.verdict == "unjudged":
        return
    path = _path(home, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(report.to_json(), encoding="utf-8")
    fresh.replace(path)


def _path(home: Path, key: str) -> Path:
    return home / "reports" / key[:2] / f"{key}.json"
