"""One evaluation whose report is kept in a run folder, for results that name their report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewright import api, config
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.executors.base import Progress
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.run_folder import fresh_run, save


@dataclass(frozen=True)
class KeptReport:
    """A report, and the run folder that holds it."""

    report: EvalReport
    folder: Path


def judge_and_keep(
    request: EvalRequest, settings: Config, progress: Progress | None = None
) -> KeptReport:
    """Judge a request and write the report into a new run folder of the setting `runs`.

    Raises:
        ConfigError: the report cannot be written there; the message names its place.
    """
    with fresh_run(settings.runs, config.dump(settings)) as folder:
        report = api.evaluate_request(request, settings, progress)
        error = save(folder, report, settings.home)
    if error is not None:
        raise ConfigError(error)
    return KeptReport(report, folder.resolve())
