"""`tilewright mcp --init`: a workspace for an agent, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tilewright.cli.main import cli


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TILEWRIGHT_PLUGINS", raising=False)

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["mcp", *words])

    return run


def test_a_workspace_keeps_its_executor(run):
    done = run("--problem", "softmax", "--init", "desk", "--executor", "http://127.0.0.1:1")
    assert done.exit_code == 0, done.stderr
    (server,) = json.loads(Path("desk/.mcp.json").read_text())["mcpServers"].values()
    assert server["args"][-4:-2] == ["--executor", "http://127.0.0.1:1"]


def test_a_workspace_holds_instructions_and_client_configuration(run, tmp_path):
    done = run("--problem", "softmax", "--init", "desk", "--device", "cpu", "--set", "home=here")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert {item.name for item in Path("desk").iterdir()} == {"SKILL.md", ".mcp.json"}
    _, head, body = Path("desk/SKILL.md").read_text().split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["name"] == "tilewright"
    assert "bundled/softmax" in about["description"]
    assert "{" not in body
    for tool in ("problem", "evaluate", "explain", "history"):
        assert f"`{tool}`" in body
    (server,) = json.loads(Path("desk/.mcp.json").read_text())["mcpServers"].values()
    assert server["command"] == sys.executable
    assert server["args"] == [
        *("-P", "-m", "tilewright", "mcp", "--problem", "softmax"),
        *("--device", "cpu", "--out", str(tmp_path / "desk" / "runs"), "--set", "home=here"),
    ]
    assert server["env"] == {"TILEWRIGHT_HOME": str(tmp_path / "home")}
    assert server["timeout"] > 300_000


def test_paths_hold_wherever_the_client_starts_the_server(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        'CASES = [{"name": "a"}]\n\n\ndef inputs(case, generator):\n    return ()\n\n\n'
        "def reference():\n    return 1\n"
    )
    (tmp_path / "settings.yaml").write_text("loop:\n  language: triton\n")
    done = run(
        *("--problem", "mine.py", "--init", "a/b", "--out", "kept", "--config", "settings.yaml")
    )
    assert done.exit_code == 0, done.stderr
    (server,) = json.loads(Path("a/b/.mcp.json").read_text())["mcpServers"].values()
    paths = [str(tmp_path / name) for name in ("mine.py", "kept", "settings.yaml")]
    assert server["args"][-5:] == [paths[0], "--out", paths[1], "--config", paths[2]]


@pytest.mark.parametrize("name", ["SKILL.md", ".mcp.json"])
def test_init_overwrites_no_file(run, name):
    Path("desk").mkdir()
    Path("desk", name).write_text("mine")
    done = run("--problem", "softmax", "--init", "desk")
    assert done.exit_code == 2
    assert f"desk/{name} would be overwritten" in done.stderr
    assert [item.name for item in Path("desk").iterdir()] == [name]
    assert Path("desk", name).read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--init", "desk"), 2, "--problem"),
        (("--problem", "nothing", "--init", "desk"), 3, "nothing"),
        (("--problem", "softmax", "--init", "desk", "--set", "no.such=1"), 2, "no such setting"),
        (("--problem", "softmax", "--init", "/dev/null/desk"), 2, "cannot be written"),
    ],
)
def test_an_unusable_problem_gets_no_workspace(run, words, code, said):
    done = run(*words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert not Path("desk").exists()


def test_without_the_mcp_package_the_command_names_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = run("--problem", "softmax")
    assert done.exit_code == 2
    assert "pip install 'tilewright[mcp]'" in done.stderr
