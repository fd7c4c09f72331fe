"""`tilewright knowledge` on the command line: modules, a folder of one's own, and its errors."""

from __future__ import annotations

import json

import pytest

from tests.unit.knowledge.test_base import MODULE, write
from tilewright.knowledge.base import load_knowledge


@pytest.fixture
def own(tmp_path):
    """Return a folder with one module, `warp/width`."""
    write(tmp_path / "own" / "index.md", "- [Warp](warp/width.md): a planted fact\n")
    write(
        tmp_path / "own" / "warp" / "width.md",
        MODULE.replace("planted fact", "zebra stripes").format(title="Warp", text="It is 32."),
    )
    return tmp_path / "own"


def test_every_module_is_listed_as_text_and_as_json(run):
    listed = run("knowledge", "list")
    rows = json.loads(run("knowledge", "list", "--json").stdout)
    modules = load_knowledge().entries
    assert listed.exit_code == 0
    assert [row["name"] for row in rows] == [module.name for module in modules]
    for module, row in zip(modules, rows, strict=True):
        assert f"\n{module.name} " in listed.stdout
        assert (row["digest"], row["tokens"]) == (module.digest, module.tokens)
        assert row["sources"] == list(module.header.sources)


def test_a_module_is_shown_with_its_header(run):
    (module,) = load_knowledge().modules(["guidance/welford"])
    assert module.source.strip() in run("knowledge", "show", "guidance/welford").stdout
    document = json.loads(run("knowledge", "show", "guidance/welford", "--json").stdout)
    assert document["text"] == module.text
    assert document["title"] == module.header.title


def test_a_search_finds_a_module_of_a_folder_only_with_this_folder(run, own):
    words = ("knowledge", "search", "zebra", "stripes", "--json")
    (found,) = json.loads(run(*words, "--knowledge", str(own)).stdout)
    assert (found["name"], found["score"], found["about"]) == ("warp/width", 6, "a planted fact")
    without = run(*words)
    assert json.loads(without.stdout) == []
    assert without.exit_code == 0
    assert "no module fits these words" in without.stderr


def test_a_search_keeps_its_limits_and_the_device(run):
    words = ("knowledge", "search", "shared memory limit", "--json", "--language", "triton")
    names = [row["name"] for row in json.loads(run(*words, "--device-model", "NVIDIA L4").stdout)]
    assert "hardware/l4" in names
    assert "hardware/h100" not in names
    assert len(json.loads(run(*words, "--modules", "1").stdout)) == 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("show", "guidance/welfort"), "did you mean 'guidance/welford'"),
        (("list", "--knowledge", "nowhere"), "nowhere: no such folder"),
        (("list", "--knowledge", "empty"), "empty: it has no index.md; write one"),
        (("search", "softmax", "--tokens", "100"), "the limit is 100"),
        (("search",), "WORDS is missing"),
        (("search", "softmax", "--modules", "0"), "--modules"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(run, tmp_path, words, part):
    (tmp_path / "empty").mkdir()
    result = run("knowledge", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert part in result.stderr.splitlines()[-1]


def test_control_characters_of_a_foreign_module_are_escaped(run, own):
    file = own / "warp" / "width.md"
    write(file, file.read_text("utf-8").replace("It is 32.", "It \x1b[2J is 32."))
    shown = run("knowledge", "show", "warp/width", "--knowledge", str(own))
    assert "\x1b" not in shown.stdout
    assert "It \\x1b[2J is 32." in shown.stdout
