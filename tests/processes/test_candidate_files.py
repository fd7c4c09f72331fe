"""Files that a candidate may read and import: its own folder, and declared folders."""

from __future__ import annotations

from pathlib import Path

from tests.processes.evaluations import RIGHT, bench, request
from tilewright.problems.candidates import make_candidate, read_files
from tilewright.records import EvalRequest, SourceFile

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


def test_a_candidate_reads_its_own_table_of_bytes(bench, tmp_path):
    (tmp_path / "the table.bin").write_bytes(bytes(range(256)))
    text = (
        "import pathlib\n"
        "TABLE = pathlib.Path(__file__).with_name('the table.bin').read_bytes()\n"
        "assert TABLE == bytes(range(256))\n"
    )
    (tmp_path / "work.py").write_text(text + RIGHT, encoding="utf-8")
    asked = folder_request(tmp_path)
    report = bench.judge(EvalRequest.from_json(asked.to_json()))

    assert report.verdict == "correct", report.outcome


def test_source_does_not_hide_in_base64(bench):
    asked = request(RIGHT)
    hidden = SourceFile.of_bytes("more.h", b"// \xff\n")
    files = (*asked.candidate.files, hidden)
    made = asked.candidate.model_copy(update={"files": files})
    report = bench.judge(asked.model_copy(update={"candidate": made}))

    assert (report.verdict, report.outcome.reason) == ("failed", "syntax_error")
