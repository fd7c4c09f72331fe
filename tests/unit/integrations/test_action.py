"""`action.yml`: its steps as shell scripts, in a repository with two commits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tilewright.problems.template import write_new

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}


def test_scripts_hold_no_expressions_and_name_inputs_that_there_are():
    # An expression in a script would let a branch's name run commands.
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        for value in step.get("env", {}).values():
            for name in EXPRESSION.findall(value):
                if name.startswith("inputs."):
                    assert name.removeprefix("inputs.") in ACTION["inputs"], name
    assert "upload-artifact" in STEPS["Keep the reports"]["uses"]
    assert STEPS["Keep the reports"]["if"] == "always()"


def as_workflow() -> dict[str, object]:
    """Return the action as a workflow of one job, the form that actionlint reads."""
    inputs = {
        name: {
            "type": "string",
            **{key: item[key] for key in ("required", "default") if key in item},
        }
        for name, item in ACTION["inputs"].items()
    }
    job = {"runs-on": "ubuntu-latest", "steps": ACTION["runs"]["steps"]}
    outputs = {name: item["value"] for name, item in ACTION["outputs"].items()}
    return {
        "on": {"workflow_call": {"inputs": inputs}},
        "jobs": {"one": job | {"outputs": outputs}},
    }


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="not shown: actionlint is not here")
def test_actionlint_finds_nothing(tmp_path):
    path = tmp_path / "workflow.yml"
    path.write_text(yaml.safe_dump(as_workflow(), sort_keys=False))
    done = subprocess.run(["actionlint", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="not shown: shellcheck is not here")
@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if "run" in step])
def test_shellcheck_finds_nothing(name):
    command = ["shellcheck", "--shell=bash", "-"]
    done = subprocess.run(command, input=STEPS[name]["run"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


class Job:
    """A repository on which the steps run, and what they wrote. Lifetime: one test."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        defaults = {name: str(item.get("default", "")) for name, item in ACTION["inputs"].items()}
        self.values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
        (folder / "output").write_text("")
        (folder / "summary").write_text("")

    def step(self, name: str) -> int:
        given = STEPS[name]
        env = {
            key: EXPRESSION.sub(lambda found: self.values.get(found[1], ""), value)
            for key, value in given["env"].items()
        }
        bin_folder = Path(sys.executable).parent
        whole = {
            **os.environ,
            **env,
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "TILEWRIGHT_HOME": str(self.folder / "home"),
        }
        (self.folder / "output").write_text("")
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", given["run"]],
            cwd=self.folder,
            env=whole,
            capture_output=True,
            text=True,
            timeout=110,
        )
        for line in (self.folder / "output").read_text().splitlines():
            key, _, value = line.partition("=")
            self.values[f"steps.{given.get('id')}.outputs.{key}"] = value
        print(done.stdout, done.stderr)
        return done.returncode


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=t", "-c", "user.email=t@t")
    done = subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_job_judges_compares_and_decides(tmp_path):
    write_new("mine", tmp_path)
    (tmp_path / ".gitignore").write_text("home\noutput\nsummary\ntilewright-runs\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    base = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "mine" / "candidate.py").write_text("def mine(x):\n    return x\n")
    inputs = {
        "candidate": "mine/candidate.py",
        "problem": "mine/problem.py",
        "options": "--set eval.timing.enabled=false --set host=never",
        "base": base,
    }
    job = Job(tmp_path, **inputs)
    assert job.step("Judge the candidate") == 0
    assert job.values["steps.judge.outputs.verdict"] == "incorrect"
    assert job.step("Compare with the base") == 0
    assert job.values["steps.compare.outputs.code"] == "1"
    assert job.step("Decide") == 1
    summary = (tmp_path / "summary").read_text()
    assert "incorrect" in summary
    assert "broke" in summary
    assert list(tmp_path.glob("tilewright-runs/candidate/*/report.json"))
    assert list(tmp_path.glob("tilewright-runs/base/*/report.json"))


@pytest.mark.parametrize(
    ("code", "compared", "strict", "unjudged", "ends"),
    [
        ("0", "0", "true", "skip", 0),
        ("0", "", "true", "skip", 0),
        ("0", "1", "true", "skip", 1),
        ("0", "1", "false", "skip", 0),
        ("1", "0", "true", "skip", 1),
        ("4", "", "true", "skip", 0),
        ("4", "", "true", "fail", 4),
    ],
)
def test_the_decision_follows_the_exit_codes(tmp_path, code, compared, strict, unjudged, ends):
    job = Job(tmp_path, **{"fail-on-regression": strict, "unjudged": unjudged})
    job.values |= {"steps.judge.outputs.code": code, "steps.compare.outputs.code": compared}
    assert job.step("Decide") == ends
