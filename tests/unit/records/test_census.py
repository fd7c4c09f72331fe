"""Censuses are read as they were written, also after a kill in the middle of a line."""

from __future__ import annotations

import gzip

import pytest

from tests.sample_reports import correct
from tests.space_programs import bad_row, changed, correct_row, header_of, write_census
from tilewright.errors import RecordError
from tilewright.records import StageRecord
from tilewright.records.census import line_of, read_census, row_of, source_digest
from tilewright.spaces import SPACES

CPP = SPACES["cpp_matmul"]
WRONG = {"verdict": "incorrect", "kind": "values", "case": "layer", "message": "at [0, 0]"}
ROWS = [
    correct_row(CPP, changed(CPP), 0.5),
    bad_row(CPP, changed(CPP, rows=2), WRONG),
    correct_row(CPP, changed(CPP), 0.6),
]


def test_rows_are_grouped_by_program(tmp_path):
    census = read_census(write_census(tmp_path / "c.jsonl", CPP, ROWS))
    assert census.header == header_of(CPP, 2)
    assert list(census.rows.values()) == [(ROWS[0], ROWS[2]), (ROWS[1],)]


def test_an_unfinished_line_is_ignored_and_a_damaged_one_is_named(tmp_path):
    path = write_census(tmp_path / "c.jsonl", CPP, ROWS)
    text = path.read_text()
    for cut in (1, 30, 100):
        path.write_text(text[:-cut])
        assert sum(map(len, read_census(path).rows.values())) == 2
    path.write_text(text.replace('"speedup":0.5', '"speedup":-0.5'))
    with pytest.raises(RecordError, match=r"c\.jsonl:2: damaged: speedup"):
        read_census(path)
    path.write_text("")
    with pytest.raises(RecordError, match="it has no header"):
        read_census(path)


def test_a_compressed_census_is_the_same(tmp_path):
    plain = read_census(write_census(tmp_path / "c.jsonl", CPP, ROWS))
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "c.jsonl").read_bytes()))
    assert read_census(packed) == plain
    whole = packed.read_bytes()
    for damaged in (whole[:-20], whole[:20] + b"\xff" * 8 + whole[28:]):
        packed.write_bytes(damaged)
        with pytest.raises(RecordError, match="cannot be read"):
            read_census(packed)


def test_blank_ends_of_lines_do_not_change_a_program():
    assert source_digest("a\nb\n") == source_digest("\n\na  \r\nb")
    assert source_digest("a\nb") != source_digest("a\n\nb")


def test_a_row_holds_what_a_report_says_without_the_wait_for_the_device():
    stages = (
        StageRecord(name="device_wait", wall_s=4.0),
        StageRecord(name="total", wall_s=5.5),
    )
    report = correct().model_copy(update={"stages": stages})
    row = row_of("0" * 64, {"rows": 1}, report, "device_wait")
    assert (row.seconds, row.speedup, row.low) == (1.5, report.speedup, report.speedup_low)
    assert [item.case for item in row.cases] == [item.case for item in report.comparisons]
    assert type(row).from_json(line_of(row)) == row
