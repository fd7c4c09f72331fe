"""The wrapper of nvcc: which header a source gets, and what happens when it fails."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tilewright.runner.loaders import short_headers

COMPILER = r"""#!/bin/sh
# Stands in for nvcc, which no machine without CUDA has: the host's preprocessor, on the same
# arguments. It fails where a source uses a name that the headers before it do not define.
exec g++ -E -P -x c++ -isystem {torch} -Werror "$@"
"""
WHOLE = "#pragma once\n#include <torch/types.h>\n#define BINDING 1\n"
TYPES = "#pragma once\n#define TENSOR 1\n"
PLAIN = "#include <torch/extension.h>\nint tensor = TENSOR;\n"
BINDS = "#include <torch/extension.h>\n// PYBIND11_MODULE\nint binding = BINDING;\n"
NEEDS_MORE = (
    "#include <torch/extension.h>\n#ifndef BINDING\n#error missing\n#endif\nint more = BINDING;\n"
)
WRONG = "#include <torch/extension.h>\n#error wrong\n"


@pytest.fixture
def wrapper(tmp_path, monkeypatch):
    """Return the wrapper below a folder whose name has a space."""
    torch = tmp_path / "installed" / "torch"
    torch.mkdir(parents=True)
    (torch / "extension.h").write_text(WHOLE)
    (torch / "types.h").write_text(TYPES)
    compiler = tmp_path / "stand-in nvcc"
    compiler.write_text(COMPILER.format(torch=torch.parent))
    compiler.chmod(0o755)
    # Whatever `install` sets is undone after the test.
    monkeypatch.setenv("PYTORCH_NVCC", "")
    folder = tmp_path / "with space"
    short_headers.install(str(folder), str(compiler))
    return folder, os.environ["PYTORCH_NVCC"]


def compiled(wrapper: str, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    source = folder / "cuda.cu"
    source.write_text(text)
    return subprocess.run(
        [*shlex.split(wrapper), str(source)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("text", "line", "whole"),
    [
        pytest.param(PLAIN, "int tensor = 1;", [], id="tensors alone: the short header"),
        pytest.param(BINDS, "int binding = 1;", ["cuda.cu"], id="names a binding: the whole one"),
        pytest.param(NEEDS_MORE, "int more = 1;", ["cuda.cu"], id="fails with the short one"),
    ],
)
def test_a_source_gets_the_smallest_header_that_does(wrapper, text, line, whole):
    folder, program = wrapper

    done = compiled(program, folder, text)

    assert done.returncode == 0, done.stderr
    assert line in done.stdout
    assert short_headers.whole_header_sources(str(folder)) == whole


def test_a_wrong_source_fails_with_the_messages_of_the_plain_build(wrapper):
    folder, program = wrapper

    done = compiled(program, folder, WRONG)

    assert done.returncode != 0
    assert "wrong" in done.stderr


def test_a_call_without_a_source_reaches_the_compiler(wrapper):
    folder, program = wrapper

    done = subprocess.run(
        [*shlex.split(program), "--version"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert short_headers.whole_header_sources(str(folder)) == []
