"""Problem sets from clones, folders and files: layouts by small fixtures, and addresses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.unit.problems.sets.test_gold_file import GOLD, drawn
from tilewright.errors import ConfigError, ProblemError
from tilewright.problems import hub
from tilewright.problems.imported_sets import (
    find_one,
    find_problems,
    imported,
    problem_set,
    write_set,
)
from tilewright.problems.sets.base import Found, Hub

MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * {number}


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
"""


def rows(path: Path, *lines: object) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def row(level: int, number: int, code: str = "") -> dict[str, object]:
    return {"level": level, "problem_id": number, "code": code or MODEL.format(number=number)}


def a_clone(folder: Path) -> Path:
    for level, number in ((1, 2), (1, 12), (2, 1)):
        path = folder / "KernelBench" / f"level{level}" / f"{number}_Some_name.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODEL.format(number=number), encoding="utf-8")
    return folder


def test_kernelbench_is_read_from_a_clone(tmp_path):
    found = problem_set("kernelbench").read(a_clone(tmp_path), "main")
    ids = [item.id for item in found.problems]
    assert ids == ["kernelbench/level1-2", "kernelbench/level1-12", "kernelbench/level2-1"]
    assert {item.entry for item in found.problems} == {"ModelNew"}
    assert {item.tolerance for item in found.problems} == {1e-4}
    for revision, tolerance in (("v0.1", 1e-2), ("v0.1-5fc1fa5", 1e-2), ("v0.2", 1e-4)):
        read = problem_set("kernelbench").read(tmp_path, revision)
        assert {item.tolerance for item in read.problems} == {tolerance}
    # The folder of levels alone will do, too.
    again = problem_set("kernelbench").read(tmp_path / "KernelBench", "v0")
    assert [item.id for item in again.problems] == ids
    assert {(item.tolerance, item.revision) for item in again.problems} == {(1e-2, "v0")}


def test_unreadable_rows_are_named_by_file_and_line_and_the_rest_is_read(tmp_path):
    path = rows(
        tmp_path / "rows.jsonl",
        row(1, 1),
        '{"level": 1, "problem_id": 2, "co',
        {"level": 1, "code": "x"},
        row(1, 1),
        row(1, 3, "x = ("),
        [1],
        row(2, 7),
    )
    found = problem_set("kernelbench").read(path, "v0")
    assert [item.id for item in found.problems] == ["kernelbench/level1-1", "kernelbench/level2-7"]
    named = "\n".join(found.skipped)
    for number, says in (
        (2, "not JSON"),
        (3, "problem_id"),
        (4, "stands twice"),
        (5, "not Python"),
    ):
        assert any(f"rows.jsonl:{number}" in line and says in line for line in found.skipped), named
    assert "rows.jsonl:6: not an object" in named


def test_an_imported_set_has_addresses(tmp_path):
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), "main")
    write_set(tmp_path, "kernelbench", "main", found)
    assert imported(tmp_path) == [("kernelbench", "main", 3)]

    def ids(address: str) -> list[str]:
        return [item.id.removeprefix("kernelbench/") for item in find_problems(address, tmp_path)]

    assert ids("kernelbench") == ids("kernelbench@main") == ["level1-2", "level1-12", "level2-1"]
    assert ids("kernelbench/level1") == ["level1-2", "level1-12"]
    assert ids("kernelbench/level1/2") == ids("kernelbench/level1-2") == ["level1-2"]
    assert find_one("kernelbench/level2-1", tmp_path).source.text == MODEL.format(number=1)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("kernelbench/level9", "has kernelbench/level1, kernelbench/level2"),
        ("kernelbench@no", "imported are: kernelbench@main"),
        ("kernelbench@main/level2/1", "revision comes last: kernelbench/level2/1@main"),
        ("kernelbench/level1", "level1 holds 2 problems: give one of kernelbench/level1-2"),
        (
            "kernelbenchx/Math",
            "yet: it is not on the Hub; git clone https://.*/KernelBenchX .* --from",
        ),
        ("tritonbench", "git clone .*/TritonBench .* import tritonbench --from TritonBench"),
        ("nobench/level1", "neither a file nor a bundled problem"),
    ],
)
def test_a_wrong_address_lists_the_known_ones(tmp_path, address, says):
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), "main")
    write_set(tmp_path, "kernelbench", "main", found)
    with pytest.raises(ProblemError, match=says):
        find_one(address, tmp_path)


def test_a_home_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "home").write_text("a file")
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), "v0")
    with pytest.raises(ConfigError, match=r"kernelbench@v0\.jsonl: cannot be written"):
        write_set(tmp_path / "home", "kernelbench", "v0", found)


def test_two_revisions_are_distinguished(tmp_path):
    for revision in ("v0", "main"):
        found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), revision)
        write_set(tmp_path, "kernelbench", revision, found)
    with pytest.raises(ProblemError, match="which kernelbench"):
        find_problems("kernelbench", tmp_path)
    assert find_one("kernelbench/level2-1@v0", tmp_path).revision == "v0"


@pytest.mark.parametrize("revision", ["../../x", "a/b", "refs/pr/1", "..", "a@b", "%2F", "v 1"])
def test_a_revision_of_any_name_is_stored_under_home(tmp_path, revision):
    home = tmp_path / "one" / "home"
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), revision)
    written = write_set(home, "kernelbench", revision, found)
    assert written.parent == home / "problems"
    assert [path.name for path in (tmp_path / "one").rglob("*.jsonl")] == [written.name]
    assert imported(home) == [("kernelbench", revision, 3)]
    assert find_one(f"kernelbench/level2-1@{revision}", home).revision == revision


@pytest.mark.parametrize(
    "revision",
    ["a\nb", "\0", "\udcff", "x" * 300, "\U0001f600" * 30],
    ids=["two lines", "a NUL", "no UTF-8", "long", "long when quoted"],
)
def test_a_revision_that_fits_no_file_name_is_refused(tmp_path, revision):
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), "main")
    with pytest.raises(ProblemError, match="--revision"):
        write_set(tmp_path, "kernelbench", revision, found)


def test_two_files_of_one_number_are_not_two_problems(tmp_path):
    (a_clone(tmp_path) / "KernelBench" / "level1" / "12_Some_other.py").write_text(
        MODEL.format(number=3)
    )
    found = problem_set("kernelbench").read(tmp_path, "main")
    assert [item.id for item in found.problems].count("kernelbench/level1-12") == 1
    assert len(found.problems) == 3
    (named,) = found.skipped
    assert "12_Some_other.py: kernelbench/level1-12 stands twice" in named


def test_a_folder_of_problem_files_is_a_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = tmp_path / "plain"
    (plain / "third").mkdir(parents=True)
    for name in ("one.py", "two.py", "third/problem.py", "_shared.py"):
        (plain / name).write_text(MODEL.format(number=2))
    (plain / "third.py").write_text(MODEL.format(number=5))
    (plain / "notes.py").write_text("x = 1\n")
    (plain / "readme.txt").write_text("Four problems.\n")
    left_out: list[str] = []
    found = find_problems("plain", tmp_path, left_out.append)
    assert [item.id for item in found] == ["one", "third", "two"]
    assert "plain/notes.py: not a problem" in left_out[0]
    assert "plain/third.py: third stands twice; the first one counts" in left_out[1]
    assert find_one("plain/one", tmp_path) == found[0] == find_one("plain/one.py", tmp_path)
    with pytest.raises(ProblemError, match=r"give one of plain/one, plain/third, plain/two$"):
        find_one("plain", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProblemError, match="empty: no problem in it"):
        find_problems("empty", tmp_path)


def test_a_local_folder_does_not_hide_a_problem_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("softmax", "kernelbench"):
        Path(name).mkdir()
        Path(name, "mine.py").write_text(MODEL.format(number=2))
    Path("rmsnorm.py").write_text("def rmsnorm(x): ...\n")
    assert find_one("softmax", tmp_path).id == "bundled/softmax"
    assert find_one("rmsnorm", tmp_path).id == "bundled/rmsnorm"
    assert find_one("./kernelbench", tmp_path).id == "mine"
    with pytest.raises(ProblemError, match="not imported yet"):
        find_one("kernelbench", tmp_path)


def test_bundled_problems_and_files_have_addresses_too(tmp_path):
    assert len(find_problems("bundled", tmp_path)) > 5
    path = rows(tmp_path / "rows.jsonl", row(1, 1), row(1, 2))
    assert [item.id for item in find_problems(str(path), tmp_path)] == [
        "kernelbench/level1-1",
        "kernelbench/level1-2",
    ]
    path.write_text("[]")
    with pytest.raises(ProblemError, match="empty"):
        find_problems(str(path), tmp_path)


def test_an_empty_import_writes_nothing(tmp_path):
    with pytest.raises(ProblemError, match=r"rows\.jsonl:3"):
        write_set(tmp_path, "kernelbench", "x", Found(skipped=["rows.jsonl:3: not JSON"]))
    assert imported(tmp_path) == []
    for name in ("kernelbench", "kernelbenchx", "tritonbench"):
        with pytest.raises(ProblemError, match="here"):
            problem_set(name).read(tmp_path, "x")


def test_without_package_or_network_the_hub_names_the_path_option(tmp_path):
    with pytest.raises((ConfigError, ProblemError), match="--from PATH"):
        hub.fetch(Hub("nobody/nothing", "main"), "main", tmp_path)


def test_kernelbenchx_is_read_with_categories(tmp_path):
    gold = tmp_path / "data" / "kernelbenchx" / "Activation"
    gold.mkdir(parents=True)
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "data_utils.py").write_text("def rand(n):\n    return [1.0] * n\n")
    drawing = GOLD.replace("x = torch.randn(4)", "x = torch.tensor(rand(4))")
    drawing = drawing.replace("def test_", "from data_utils import rand\n\n\ndef test_")
    (gold / "gelu_std.py").write_text(drawing)
    records = [
        {
            "name": "gelu_std",
            "file": "Activation/gelu_std.py",
            "description": "What it does.",
            "precision_thresholds": {"cosine_sim": 0.95, "l1_relative": 0.05, "rmse": 0.1},
        },
        {"name": "lost", "file": "Math/lost.py"},
        {"name": "nothing"},
    ]
    (tmp_path / "data" / "kernelbenchx_v1.json").write_text(json.dumps(records))
    found = problem_set("kernelbenchx").read(tmp_path, "fd41922")
    (problem,) = found.problems
    assert (problem.id, problem.category) == ("kernelbenchx/Activation/gelu_std", "Activation")
    assert problem.description == "What it does."
    assert problem.thresholds == (0.95, 0.05, 0.1)
    assert [x.tolist() for x, *_ in drawn(problem)] == [[1.0] * 4] * 2
    assert sys.modules.pop("data_utils").rand(1) == [1.0]
    assert "kernelbenchx_v1.json[1]: its gold file cannot be read" in found.skipped[0]
    assert "kernelbenchx_v1.json[2]: wants the field 'file'" in found.skipped[1]
    (tmp_path / "utils" / "data_utils.py").unlink()
    again = problem_set("kernelbenchx").read(tmp_path / "data", "fd41922")
    assert again.problems == []
    assert "gelu_std.py: its tests draw inputs by" in again.skipped[0]


def test_tritonbench_has_two_groups(tmp_path):
    for folder in ("TritonBench_G_v1", "TritonBench_T_v1"):
        (tmp_path / "data" / folder).mkdir(parents=True)
        (tmp_path / "data" / folder / "gelu_std.py").write_text(GOLD)
    (tmp_path / "data" / "TritonBench_G_v1" / "broken.py").write_text("x = 1\n")
    found = problem_set("tritonbench").read(tmp_path, "603e28a")
    assert [item.id for item in found.problems] == [
        "tritonbench/g/gelu_std",
        "tritonbench/t/gelu_std",
    ]
    assert "broken.py" in found.skipped[0]


def test_a_space_has_an_address_and_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [problem.id for problem in find_problems("spaces", tmp_path)]
    assert "spaces/cpp_matmul" in names
    assert find_one("spaces/cpp_matmul", tmp_path).entry == "matmul_bias_relu"
    with pytest.raises(ProblemError, match="no space 'x'; known: cpp_matmul, "):
        find_problems("spaces/x", tmp_path)
    (tmp_path / "spaces" / "own").mkdir(parents=True)
    (tmp_path / "spaces" / "own" / "problem.py").write_text(MODEL.format(number=1))
    assert [problem.id for problem in find_problems("spaces", tmp_path)] == ["own"]
    assert find_one("spaces/cpp_matmul", tmp_path).id == "spaces/cpp_matmul"
