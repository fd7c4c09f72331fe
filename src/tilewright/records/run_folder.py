"""Run folders: the settings, the report and the sources of an evaluation."""

from __future__ import annotations

import json
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path

from tilewright.errors import ConfigError, RecordError
from tilewright.records.report import EvalReport

REPORT = "report.json"


def create_run(parent: Path, settings: str) -> Path:
    """Make a new run folder in `parent` with the resolved settings in `run.yaml`.

    Raises:
        ConfigError: the folder cannot be written.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = parent / f"{stamp}-{secrets.token_hex(2)}"
    try:
        folder.mkdir(parents=True)
        (folder / "run.yaml").write_text(settings, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ConfigError(
            f"{folder}: cannot be written ({error.strerror}); choose another with --out"
        ) from error
    return folder


def write_report(folder: Path, report: EvalReport) -> Path:
    """Write a report and its sources into a run folder; return the report's path.

    Raises:
        ConfigError: the disk is full or the folder is missing.
    """
    path = folder / REPORT
    fresh = folder / f"{REPORT}.new"
    try:
        fresh.write_text(report.to_json(indent=1), encoding="utf-8")
        fresh.replace(path)
        (folder / "environment.json").write_text(
            report.environment.to_json(indent=1), encoding="utf-8"
        )
        for file in report.request.candidate.files:
            target = folder / "candidate" / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def read_report(path: Path) -> EvalReport:
    """Read the report in a run folder, or the report file itself.

    Raises:
        RecordError: there is no report, or it is damaged or of a newer schema.
    """
    file = path / REPORT if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
        json.loads(text)
        return EvalReport.from_json(text)
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file}: no report can be read here: {error}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file}: damaged: {error}") from error
    except RecordError as error:
        raise RecordError(f"{file}: {error}") from error
