"""`data export --card`: a folder that `datasets` reads, with licences and what was left out."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.integrations.logger_stores import events_of
from tilewright.problems.loader import find_problem
from tilewright.records.event_log import EventLog


@pytest.fixture
def source(tmp_path):
    """Return a run of two problems, of which a licence restricts one."""
    problem = find_problem("softmax")
    plain = problem.model_copy(update={"id": "set/p"})
    folder = tmp_path / "source"
    folder.mkdir()

    def write(licence=""):
        own = plain.model_copy(update={"licence": licence})
        (folder / "problems.jsonl").write_text(own.to_json() + "\n")
        with EventLog(folder) as log:
            log.extend(events_of(count=7))
        return folder

    return write


def test_the_folder_is_read_by_datasets_with_intervals_and_a_card(source, run, tmp_path):
    datasets = pytest.importorskip("datasets")
    done = run("data", "export", str(source()), "--to", "made", "--card", "--verdict", "correct")
    assert done.exit_code == 0, done.output
    found = datasets.load_dataset(str(tmp_path / "made"), cache_dir=str(tmp_path / "cache"))
    rows = list(found["train"])
    assert len(rows) == 3
    assert all(row["speedup_low"] < row["speedup"] < row["speedup_high"] for row in rows)
    assert {row["licence"] for row in rows} == {""}
    assert rows[0]["prompt"]
    card = (tmp_path / "made" / "README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    assert head["configs"][0]["data_files"][0]["path"] == "data/train.parquet"
    assert "| correct | 3 |" in card
    assert "4 not chosen" in card
    assert "| cpu |" in card


def test_a_restricted_source_is_left_out_and_named(source, run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    done = run("data", "export", str(source("Restricted 1.0")), "--to", "made", "--card")
    assert done.exit_code == 0, done.output
    rows = parquet.read_table(tmp_path / "made" / "data" / "train.parquet").to_pylist()
    assert {row["licence"] for row in rows} == {"Restricted 1.0"}
    assert all(row["prompt"] == [] for row in rows)
    card = (tmp_path / "made" / "README.md").read_text()
    assert "Restricted 1.0; the source of the problem is left out" in card


def test_a_folder_that_holds_something_is_refused(source, run, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine").write_text("")
    done = run("data", "export", str(source()), "--to", "made", "--card")
    assert done.exit_code == 2
    assert "must be a new or an empty folder" in done.stderr
