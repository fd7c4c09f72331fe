"""Without the extra `client`, only a remote executor fails, with the command that helps."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BY_CLIENT = (
    "from tilewright.errors import ConfigError\n"
    "from tilewright.client import Client\n"
    "try:\n"
    "    Client('http://127.0.0.1:9')\n"
    "except ConfigError as error:\n"
    "    print(error)\n"
    "    raise SystemExit(error.exit_code)\n"
)


def run_without(module, folder, *words):
    """Run Python where importing a module fails as if it were not installed."""
    folder.joinpath(f"{module}.py").write_text(
        f"raise ModuleNotFoundError('No module named {module}', name={module!r})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder), "TILEWRIGHT_HOME": str(folder / "home")}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", ["httpx", "httpx_sse"])
def test_the_client_exits_2_and_names_the_extra(tmp_path, module):
    done = run_without(module, tmp_path, "-c", BY_CLIENT)
    assert done.returncode == 2, done.stderr
    assert f"needs {module}: pip install 'tilewright[client]'" in done.stdout


def test_the_remote_executor_of_the_command_line_exits_2_and_names_the_extra(tmp_path):
    words = ["-m", "tilewright", "eval", "softmax", "--problem", "softmax"]
    (tmp_path / "softmax.py").write_text("def softmax(x):\n    return x.softmax(-1)\n")
    words[3] = str(tmp_path / "softmax.py")
    done = run_without("httpx", tmp_path, *words, "--set", "executor=http://127.0.0.1:9")
    assert done.returncode == 2, done.stderr
    assert "pip install 'tilewright[client]'" in done.stderr


def test_other_commands_need_no_extra(tmp_path):
    done = run_without("httpx", tmp_path, "-m", "tilewright", "problems", "list")
    assert done.returncode == 0, done.stderr
