"""Fixtures of the unit tests: roles in threads, and the command line."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Read when triton is first imported, which some of these tests do.
os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def problem_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let problems be loaded in this process, and leave nothing of them."""
    monkeypatch.setitem(sys.modules, "tilewright_problem", None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def judge(problem_module: None) -> Iterator[object]:  # noqa: ARG001
    """Yield a `JudgeRole`."""
    import torch

    from tests.judge_role import JudgeRole

    threads = torch.get_num_threads()
    role = JudgeRole()
    yield role
    role.close()
    torch.set_num_threads(threads)


@pytest.fixture
def runner_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Let candidates be loaded and built in this process, and undo all that they change."""
    import torch
    from torch.utils import cpp_extension

    from tilewright.runner import build_main, main

    root = tmp_path / "candidate"
    monkeypatch.setattr(main, "ROOT", str(root))
    monkeypatch.setattr(build_main, "ROOT", str(root))
    monkeypatch.setattr(build_main, "EXTENSIONS", str(tmp_path / "extensions"))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "candidate", None)
    monkeypatch.setattr(ctypes.CDLL, "__init__", ctypes.CDLL.__init__)
    monkeypatch.setattr(cpp_extension, "load", cpp_extension.load)
    monkeypatch.setattr(cpp_extension, "load_inline", cpp_extension.load_inline)
    _restore_triton(monkeypatch)
    threads, streams = torch.get_num_threads(), [os.dup(1), os.dup(2)]
    yield root
    for number, saved in enumerate(streams, start=1):
        os.dup2(saved, number)
        os.close(saved)
    torch.set_num_threads(threads)
    gc.enable()


def _restore_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """See to it that triton gets its launch entries and its driver back."""
    try:
        from triton.runtime import driver, interpreter, jit
    except ImportError:
        return
    monkeypatch.setattr(interpreter.GridExecutor, "__call__", interpreter.GridExecutor.__call__)
    monkeypatch.setattr(jit.JITFunction, "run", jit.JITFunction.run)
    monkeypatch.setattr(driver, "_active", None)


@pytest.fixture
def runner(runner_folder: Path) -> Iterator[object]:  # noqa: ARG001
    """Yield a `RunnerRole`."""
    from tests.runner_role import RunnerRole

    role = RunnerRole()
    yield role
    role.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Return a function that runs the command in a folder of its own."""
    from click.testing import CliRunner

    from tilewright.cli.main import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(cli, list(words))
