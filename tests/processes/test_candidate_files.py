"""Files that a candidate may read and import: its own folder, and declared folders."""

from __future__ import annotations

from pathlib import Path

from tests.processes.evaluations import RIGHT, bench, request
from tilewright.problems.candidates import make_candidate, read_files
from tilewright.records import EvalRequest

__all__ = ["bench"]


def folder_request(folder: Path, **changes: object) -> EvalRequest:
    """Return a request for the candidate in a folder."""
    asked = request(RIGHT)
    made = make_candidate(read_files(str(folder)), asked.problem, **changes)
    return asked.model_copy(update={"candidate": made})


def test_a_candidate_reads_its_own_data_file(bench, tmp_path):
    (tmp_path / "settings.json").write_text('{"bits": 4}', encoding="utf-8")
    text = (
        "import json, pathlib\n"
        "SETTINGS = json.loads(pathlib.Path(__file__).with_name('settings.json').read_text())\n"
        "assert SETTINGS['bits'] == 4\n"
    )
    (tmp_path / "work.py").write_text(text + RIGHT, encoding="utf-8")
    report = bench.judge(folder_request(tmp_path))

    assert report.verdict == "correct", report.outcome


def test_a_module_in_a_folder_of_the_users_is_found_where_it_is_declared(
    bench, tmp_path, monkeypatch
):
    packages, own = tmp_path / "packages", tmp_path / "own"
    packages.mkdir()
    own.mkdir()
    (packages / "own_steps.py").touch()
    (own / "work.py").write_text("import own_steps\n" + RIGHT, encoding="utf-8")
    monkeypatch.syspath_prepend(str(packages))
    report = bench.judge(folder_request(own))

    assert report.verdict == "failed"
    assert "--python-path DIR" in report.outcome.message.partition("\n")[0]
    declared = folder_request(own, allow_imports=(str(packages),))
    assert bench.judge(declared).verdict == "correct"
