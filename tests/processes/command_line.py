"""A folder with a problem and candidates, and the command line in it, for tests of commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.executors.host_connection import running_hosts, stop_host

COMMAND = [sys.executable, "-m", "tilewright.cli.main"]
QUICK = ["--set", "eval.timing.max_s=0.1", "--set", "eval.timing.min_blocks=4"]
UNTIMED = ["--set", "eval.timing.enabled=false"]
# A supervisor takes seconds to start: tests of a verdict share one.
WARM = ["--host", *UNTIMED]
OF_A_TEST = "PYTEST_CURRENT_TEST"

PROBLEM = """
import torch

ENTRY = "double"
CASES = [{"name": "even", "n": 8}, {"name": "odd", "n": 33}]
VARY = {"contents": ["scale"]}

def inputs(case, generator):
    return (torch.randn(4, case["n"], generator=generator),)

def reference(x):
    return torch.tanh(x) + x
"""
HONEST = "import torch\ndef double(x):\n    return torch.tanh(x).add_(x)\n"
CANDIDATES = {
    "honest": HONEST,
    "odd": (
        "import torch\ndef double(x):\n    y = torch.tanh(x) + x\n"
        "    if x.shape[1] % 2:\n        y[:, -1] = 0\n    return y\n"
    ),
    "nan": (
        "import torch\ndef double(x):\n    y = torch.tanh(x) + x\n"
        "    y[x.abs() > 60] = float('nan')\n    return y\n"
    ),
    "cached": (
        "import torch\nkept = {}\ndef double(x):\n"
        "    if x.shape not in kept:\n        kept[x.shape] = torch.tanh(x) + x\n"
        "    return kept[x.shape]\n"
    ),
    "raises": "import torch\ndef double(x):\n    raise KeyError('mine')\n",
    "overwrites": (
        "import torch\ndef double(x):\n    y = torch.tanh(x) + x\n    x.zero_()\n    return y\n"
    ),
    "broken": "def double(x:\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    made = tmp_path_factory.mktemp("home")
    yield made
    for path, state in list(running_hosts()):
        if state.home == str(made):
            assert stop_host(path)


@pytest.fixture
def folder(tmp_path, home, monkeypatch):
    """Work in a folder with a problem and candidates."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(home))
    (tmp_path / "double.py").write_text(PROBLEM)
    for name, text in CANDIDATES.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    # A warm host serves the clients of one environment, which is not that of one test.
    environment = {name: text for name, text in os.environ.items() if name != OF_A_TEST}
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
        **options,
    )


def judge(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run("eval", f"{name}.py", "-p", "double.py", *words)


def only_run(parent: Path = Path("runs")) -> Path:
    (folder,) = parent.iterdir()
    return folder
