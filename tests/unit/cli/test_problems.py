"""`tilewright problems` on the command line: sets, and the rows that were left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.problems.sets.test_gold_file import GOLD
from tests.unit.problems.test_imported_sets import MODEL, a_clone, row, rows
from tilewright.cli.render import table, to_text
from tilewright.config import load
from tilewright.executors.factory import device_model
from tilewright.problems.imported_sets import find_one
from tilewright.records.problem_lint import CaseHealth, Health, memory_of


def next_of(result) -> list[str]:
    assert result.exit_code == 0, result.stderr
    last = result.stderr.splitlines()[-1]
    return last.removeprefix("tilewright: next: tilewright ").split()


def test_suggested_commands_work_for_any_revision_name(run, tmp_path):
    a_clone(tmp_path / "clone")
    for revision in ("main", "refs/pr/1", "../../x"):
        made = run("problems", "import", "kernelbench", "--from", "clone", "--revision", revision)
        listing = next_of(made)
        assert listing == ["problems", "list", f"kernelbench@{revision}"]
        showing = next_of(run(*listing))
        assert showing == ["problems", "show", f"kernelbench/level1-2@{revision}"]
        assert run(*showing).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clone", "home"]


def test_problems_of_a_folder_or_file_are_listed_and_unusable_ones_named(run, tmp_path):
    Path("plain").mkdir()
    Path("plain/one.py").write_text(MODEL.format(number=1))
    Path("plain/two.py").write_text("x = 1\n")
    rows(tmp_path / "rows.jsonl", row(1, 1), '{"level": 1, "pro')
    wanted = {"plain": "plain/two.py: not a problem", "rows.jsonl": "rows.jsonl:2: not JSON"}
    for address, named in wanted.items():
        listed = run("problems", "list", address)
        assert next_of(listed) == ["problems", "lint", address]
        assert f"left out: {named}" in listed.stderr
        (only,) = json.loads(run("problems", "list", address, "--json").stdout)
        assert only["kind"] == "module"


def test_long_columns_are_wrapped():
    made = table("problem", "weak", "memory", "notes", wrap=(1,))
    made.add_row("kernelbench/level1-19", ", ".join(["skipped parameters"] * 6), "98.3 MB", "n")
    text = to_text(made, width=60)
    assert "kernelbench/level1-19" in text
    assert "98.3 MB" in text
    assert "".join(text.split()).count("skipped") + text.count("paramet") >= 6


def test_long_problem_names_are_cut(run):
    gold = Path("kernelbenchx", "Math")
    gold.mkdir(parents=True)
    (gold / "gelu_std.py").write_text(f'"""{"d" * 5000}"""\n{GOLD}')
    category = "M" * 3_000_000
    records = [{"file": "Math/gelu_std.py", "category": category}] * 25
    Path("kernelbenchx_v1.json").write_text(json.dumps(records))
    made = run("problems", "import", "kernelbenchx", "--from", ".")
    assert made.exit_code == 0
    assert "left out: 4 more" in made.stderr
    assert len(made.stderr) < 20 * 400
    for words in (("list", "kernelbenchx"), ("show", "kernelbenchx")):
        said = run("problems", *words)
        assert said.exit_code == 0
        assert len(said.output) < 12_000
    (whole,) = json.loads(run("problems", "list", "kernelbenchx", "--json").stdout)
    assert category in whole["address"]


@pytest.mark.parametrize("address", ["x" * 5000, "nope/" * 900, "kernelbench@" + "x" * 5000])
def test_an_address_that_no_file_can_have_is_one_line(run, address):
    result = run("problems", "show", address)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert len(result.stderr) < 2100


def test_the_linter_refuses_a_remote_executor(run):
    result = run("problems", "lint", "softmax", "--set", "executor=http://somewhere:1")
    assert result.exit_code == 2
    assert "on this machine only, and the executor is http://somewhere:1" in result.stderr


def test_the_linters_table_shows_memory_and_reference_of_the_largest_case(run, tmp_path):
    """Its findings are there already, so that nothing is judged here."""
    run("problems", "list", "--set", f"home={tmp_path / 'home'}")
    problem = find_one("softmax", tmp_path)
    cases = tuple(
        CaseHealth(
            case=name, official={}, strict=(), random=False, deterministic=True,
            call_s=call_s, input_bytes=size, output_bytes=size, peak_bytes=peak,
        )
        for name, call_s, size, peak in (("a", 2e-6, 1000, None), ("b", 0.25, 4000, 3 << 30))
    )  # fmt: skip
    assert [memory_of(case) for case in cases] == [2000, 3 << 30]
    health = Health(problem=problem.id, problem_digest=problem.digest(), device="x", cases=cases)
    model = "".join(c if c.isalnum() else "-" for c in device_model(load(None, []), "cpu"))
    kept = tmp_path / "home" / "health" / f"{problem.digest()[:32]}.{model}.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(health.to_json())
    result = run("problems", "lint", "softmax")
    assert result.exit_code == 0, result.stderr
    head, line = result.stdout.splitlines()
    assert head.split()[-3:] == ["memory", "reference", "notes"]
    assert line.split() == ["bundled/softmax", "no", "no", "3.22", "GB", "250", "ms"]
    assert "1 problem, 0 weak strictly" in result.stderr
