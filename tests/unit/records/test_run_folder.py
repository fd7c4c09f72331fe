"""Run folders and the report cache: written completely or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tests.unit.records.test_validation import CANDIDATE, REQUEST, report
from tilewright.errors import ConfigError, RecordError
from tilewright.records import ReportEnvironment, SourceFile, Unjudged
from tilewright.records.run_folder import (
    create_run,
    lookup,
    read_report,
    remember,
    work_key,
    write_report,
)

HERE = ReportEnvironment(device="cpu", device_name="x", host={"cores": 2}, versions={"torch": "2"})
KEY = "ab" * 32
VERSION_1 = Path(__file__).parents[2] / "golden" / "v1"


def test_a_run_folder_holds_its_settings(tmp_path):
    first = create_run(tmp_path / "runs", "home: x\n")
    second = create_run(tmp_path / "runs", "home: x\n")

    assert (first / "run.yaml").read_text() == "home: x\n"
    assert first != second
    assert first.parent == tmp_path / "runs"


def test_a_name_that_another_run_has_is_drawn_again_and_harms_no_run(tmp_path, monkeypatch):
    names = iter(["aaaa", "aaaa", "aaaa", "bbbb"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    monkeypatch.setattr("tilewright.records.run_folder.datetime", Noon)
    first = create_run(tmp_path, "first: 1\n")
    second = create_run(tmp_path, "second: 2\n")
    assert (first.name, second.name) == ("20260102-120000-aaaa", "20260102-120000-bbbb")
    assert (first / "run.yaml").read_text() == "first: 1\n"


class Noon(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 2, 12, tzinfo=tz)


def test_a_report_is_read_back_from_its_folder_or_file(tmp_path):
    files = (SourceFile(path="a.py", text="x = 1\n"), SourceFile(path="deep/b.py", text="y\n"))
    request = REQUEST.model_copy(
        update={"candidate": CANDIDATE.model_copy(update={"files": files})}
    )
    made = report(request=request)
    folder = create_run(tmp_path, "")
    path = write_report(folder, made)

    assert read_report(folder) == read_report(path) == made
    assert (folder / "candidate" / "deep" / "b.py").read_text() == "y\n"
    assert (
        ReportEnvironment.from_json((folder / "environment.json").read_text()) == made.environment
    )
    assert sorted(item.name for item in folder.iterdir()) == [
        *("candidate", "environment.json", "report.json", "run.yaml"),
    ]


def test_writing_again_replaces_the_report(tmp_path):
    folder = create_run(tmp_path, "")
    write_report(folder, report())
    write_report(folder, report(candidate_output="second"))

    assert read_report(folder).candidate_output == "second"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"file.*no run folder can be made.*--out"):
        create_run(tmp_path / "file", "")
    with pytest.raises(ConfigError, match=r"report\.json: cannot be written"):
        write_report(tmp_path / "file", report())


@pytest.mark.parametrize("content", [None, "", "{", '{"verdict": 1}', "[" * 100_000, "\udcff"])
def test_a_file_that_is_no_report_is_refused_by_its_path(tmp_path, content):
    if content is not None:
        (tmp_path / "report.json").write_bytes(content.encode(errors="surrogateescape"))

    with pytest.raises(RecordError, match=re.escape(str(tmp_path)) + ".*report.json"):
        read_report(tmp_path)
    with pytest.raises(RecordError, match=re.escape(str(tmp_path / "report.json"))):
        read_report(tmp_path / "report.json")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("speedup", "soon", "damaged: speedup"), ("schema_version", 9, "upgrade tilewright")],
)
def test_a_damaged_or_newer_report_of_version_1_is_refused_by_its_path(
    tmp_path, field, value, message
):
    path = tmp_path / "report.json"
    document = json.loads((VERSION_1 / "eval_correct.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, field: value}), encoding="utf-8")

    with pytest.raises(RecordError, match=f"{re.escape(str(path))}: .*{message}"):
        read_report(tmp_path)


def test_the_key_of_work_depends_on_everything_but_the_seed():
    seeded = REQUEST.model_copy(update={"seed": "1" * 32})
    key = work_key(REQUEST, HERE, "0.1.0")

    assert work_key(seeded, HERE, "0.1.0") == key
    other = REQUEST.model_copy(update={"protocol": "official"})
    elsewhere = HERE.model_copy(update={"device_name": "y"})
    keys = [work_key(other, HERE, "0.1.0"), work_key(REQUEST, elsewhere, "0.1.0")]
    assert len({key, *keys, work_key(REQUEST, HERE, "0.2.0")}) == 4


def test_a_remembered_report_is_found(tmp_path):
    assert lookup(tmp_path, KEY) is None
    remember(tmp_path, KEY, report())

    assert lookup(tmp_path, KEY) == report()
    assert lookup(tmp_path, "cd" * 32) is None
    assert [path.name for path in (tmp_path / "reports" / "ab").iterdir()] == [f"{KEY}.json"]


def test_an_unjudged_report_is_not_remembered(tmp_path):
    remember(tmp_path, KEY, report(Unjudged(reason="no_device", message="m")))

    assert lookup(tmp_path, KEY) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"schema_version": 9}'])
def test_a_damaged_entry_counts_as_absent(tmp_path, content):
    remember(tmp_path, KEY, report())
    (tmp_path / "reports" / "ab" / f"{KEY}.json").write_bytes(content)

    assert lookup(tmp_path, KEY) is None


def test_a_report_cache_that_cannot_be_written_raises(tmp_path):
    (tmp_path / "reports").write_text("")

    with pytest.raises(OSError, match="reports"):
        remember(tmp_path, KEY, report())


def test_a_full_disk_leaves_the_old_report(tmp_path):
    folder = create_run(tmp_path, "")
    write_report(folder, report(candidate_output="first"))
    os.mkdir(folder / "report.json.new")

    with pytest.raises(ConfigError, match="cannot be written"):
        write_report(folder, report(candidate_output="second"))
    assert read_report(folder).candidate_output == "first"
    shutil.rmtree(folder / "report.json.new")
    assert json.loads(Path(folder / "report.json").read_text())["candidate_output"] == "first"
