"""Damaged rows of problem sets are named by their place, and the rest is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.problems.sets.test_gold_file import GOLD
from tests.unit.problems.test_imported_sets import row
from tilewright.errors import ProblemError
from tilewright.problems.imported_sets import find_problems, problem_set
from tilewright.problems.sets.base import Found, json_rows, read_rows

DEEP = "[" * 100_000

NUMBERS = "wants level and problem_id, numbers from 0 on"


def read(path: Path, *lines: bytes) -> Found:
    path.write_bytes(b"\n".join(lines) + b"\n")
    return problem_set("kernelbench").read(path, "v0")


def a_row(number: int) -> bytes:
    return json.dumps(row(1, number)).encode()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (DEEP.encode(), "not JSON: nested too deeply"),
        (
            b'{"level": 1, "problem_id": Infinity, "code": ""}',
            NUMBERS,
        ),
        (
            b'{"level": NaN, "problem_id": 1, "code": ""}',
            NUMBERS,
        ),
        (
            b'{"level": 1, "problem_id": 1e999, "code": ""}',
            NUMBERS,
        ),
        (
            b'{"level": 1, "problem_id": 2.7, "code": ""}',
            NUMBERS + ", and code: level '1', problem_id '2.7'",
        ),
        (
            b'{"level": 1, "problem_id": true, "code": ""}',
            NUMBERS + ", and code: level '1', problem_id 'True'",
        ),
        (
            b'{"level": 1, "problem_id": -3, "code": ""}',
            NUMBERS + ", and code: level '1', problem_id '-3'",
        ),
        (b'{"level": 1, "problem_id": "\xd9\xa3", "code": ""}', NUMBERS),
        (b'{"level": 1, "problem_id": 2, "code": null}', NUMBERS),
        (b'{"level": 1, "problem_id": 2, "code": "\xe9"}', "not UTF-8"),
        (b'{"level": 1, "problem_id": 2, "code": "# \\ud800"}', "not Python"),
        (b"[1, 2]", "not an object"),
    ],
)
def test_only_the_damaged_line_is_skipped(tmp_path, line, says):
    for lines, place in (((a_row(1), line, a_row(3)), 2), ((line, a_row(1), a_row(3)), 1)):
        found = read(tmp_path / "rows.jsonl", *lines)
        assert [item.id for item in found.problems] == [
            "kernelbench/level1-1",
            "kernelbench/level1-3",
        ]
        (named,) = found.skipped
        assert f"rows.jsonl:{place}: {says}" in named
        assert len(named) < 400


def test_a_byte_order_mark_is_ignored(tmp_path):
    found = read(tmp_path / "rows.jsonl", b"\xef\xbb\xbf" + a_row(1), a_row(2))
    assert (len(found.problems), found.skipped) == (2, [])
    array = b"\xef\xbb\xbf[" + a_row(1) + b",\n" + a_row(2) + b"]"
    found = read(tmp_path / "rows.json", array)
    assert (len(found.problems), found.skipped) == (2, [])


def test_a_damaged_array_is_named_and_of_its_rows_only_damaged_ones_are_skipped(tmp_path):
    path, skipped = tmp_path / "rows.json", list[str]()
    path.write_bytes(b'[{"a": 1},\n{"a": "\xe9"},\n[2],\n{"a": 3}]')
    assert [found for _, found in json_rows(path, skipped)] == [{"a": 1}, {"a": 3}]
    assert skipped == [f"{path}[1]: not UTF-8", f"{path}[2]: not an object"]
    for text in (DEEP, '[{"a": 1},\n{"a": 2}'):
        path.write_text(text)
        with pytest.raises(ProblemError, match=r"rows\.json: not JSON"):
            list(json_rows(path, []))


def test_invalid_thresholds_are_named(tmp_path):
    gold = tmp_path / "kernelbenchx" / "Activation"
    gold.mkdir(parents=True)
    right = {"cosine_sim": 0.95, "l1_relative": 0.05, "rmse": 0.1}
    wrong = ([0.95, 0.05, 0.1], {**right, "rmse": "little"}, {**right, "rmse": float("inf")})
    records = []
    for number, thresholds in enumerate((*wrong, right)):
        (gold / f"gelu_{number}.py").write_text(GOLD)
        file = f"Activation/gelu_{number}.py"
        records.append({"file": file, "precision_thresholds": thresholds})
    records += [records[-1], {"file": "no\0name.py"}]
    (tmp_path / "kernelbenchx_v1.json").write_text(json.dumps(records))
    found = problem_set("kernelbenchx").read(tmp_path, "main")
    assert [item.thresholds for item in found.problems] == [(0.95, 0.05, 0.1)]
    places = ["precision_thresholds is not an object", *["precision_thresholds: "] * 2]
    places += ["gelu_3 stands twice; the first", "null byte"]
    for number, (said, part) in enumerate(zip(found.skipped, places, strict=True)):
        place = number if number < 3 else number + 1
        assert f"kernelbenchx_v1.json[{place}]: " in said
        assert part in said


def test_rows_are_read_from_parquet(tmp_path):
    from pyarrow import Table, parquet

    path = tmp_path / "rows.parquet"
    lines = [row(1, 1), {**row(1, 2), "code": "x = ("}, row(1, 1), {**row(4, 7), "level": None}]
    parquet.write_table(Table.from_pylist([*lines, row(4, 7)]), path)
    found = problem_set("kernelbench").read(path, "main")
    assert [item.id for item in found.problems] == ["kernelbench/level1-1", "kernelbench/level4-7"]
    for place, says in ((1, "not Python"), (2, "stands twice"), (3, "wants level")):
        assert f"rows.parquet[{place}]: " in found.skipped[place - 1]
        assert says in found.skipped[place - 1]
    left_out: list[str] = []
    assert find_problems(str(path), tmp_path, left_out.append)[1].id == "kernelbench/level4-7"
    assert len(left_out) == 3


def test_a_parquet_dataset_has_one_file_per_level(tmp_path):
    from pyarrow import Table, parquet

    (tmp_path / "data").mkdir()
    for level in (1, 4):
        rows = Table.from_pylist([row(level, 1)])
        parquet.write_table(rows, tmp_path / "data" / f"level_{level}-00000-of-00001.parquet")
    (tmp_path / "data" / "level_9.parquet").write_bytes(b"PAR1 and no more")
    found = problem_set("kernelbench").read(tmp_path, "main")
    assert [item.id for item in found.problems] == ["kernelbench/level1-1", "kernelbench/level4-1"]
    assert "level_9.parquet: not parquet" in found.skipped[0]


def test_only_the_damaged_row_group_of_parquet_is_skipped(tmp_path):
    from pyarrow import Table, parquet

    path, skipped = tmp_path / "rows.parquet", list[str]()
    rows = [{"a": number, "b": f"{number}" * 50} for number in range(30)]
    parquet.write_table(Table.from_pylist(rows), path, row_group_size=10, compression="gzip")
    column = parquet.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(data)
    seen = [(where, found["a"]) for where, found in read_rows(path, skipped)]
    assert seen == [(f"{path}[{a}]", a) for a in (*range(10), *range(20, 30))]
    assert f"{path}[10..19]: cannot be read" in skipped[0]
    path.write_bytes(data[:100])
    with pytest.raises(ProblemError, match=r"rows\.parquet: not parquet"):
        list(read_rows(path, skipped))
