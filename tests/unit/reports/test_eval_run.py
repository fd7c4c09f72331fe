"""A run of `eval` opens as every other run does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import sample_reports
from tilewright.cli.report import command as report
from tilewright.cli.view import command as view
from tilewright.errors import ConfigError
from tilewright.records import EvalReport
from tilewright.records.event_log import is_eval_run
from tilewright.records.run_folder import read_report, write_report


def a_run(folder: Path, found: EvalReport) -> Path:
    folder.mkdir()
    write_report(folder, found)
    return folder


def called(command, *arguments):
    done = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_its_page_lies_beside_the_verdict(tmp_path):
    folder = a_run(tmp_path / "run", sample_reports.correct())
    # The second time there is a page, whose data have the name of a verdict.
    for _ in range(2):
        called(report, folder)
    shown = json.loads((folder / "report" / "report.json").read_text())
    assert shown["runs"][0]["headline"].startswith("1 candidate for 1 problem: 1 is correct")
    assert read_report(folder) == sample_reports.correct()
    assert is_eval_run(folder)


def test_no_page_overwrites_a_verdict(tmp_path):
    folder = a_run(tmp_path / "run", sample_reports.correct())
    with pytest.raises(ConfigError, match="the verdict of a run of eval, which would be lost"):
        called(report, folder, "--out", folder)
    assert read_report(folder).verdict == "correct"


def test_view_shows_its_candidate(tmp_path):
    folder, page = a_run(tmp_path / "run", sample_reports.correct()), tmp_path / "view.html"
    called(view, folder, "--export", page)
    assert sample_reports.correct().request.problem.id in page.read_text()
    assert json.loads(called(view, folder, "--json"))["verdict"]["verdict"] == "correct"


def test_runs_of_one_problem_make_one_leaderboard(tmp_path):
    folders = [a_run(tmp_path / name, sample_reports.correct()) for name in ("before", "after")]
    called(report, *folders, "--out", tmp_path / "pages")
    shown = json.loads((tmp_path / "pages" / "report.json").read_text())
    assert len(shown["runs"]) == 2
