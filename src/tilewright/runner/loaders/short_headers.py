"""A faster compilation of CUDA sources that include `torch/extension.h`.

That header contains torch's C++ frontend and its Python bindings. nvcc needs about twice as long
for it as for `torch/types.h`, which has the tensors and their functions. Most kernels need no more.
So nvcc finds a `torch/extension.h` that includes `torch/types.h` alone. A source that names a part
which only the whole header has is compiled with the whole one, and so is a source that fails.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

WHOLE_HEADER_ONLY = (
    *("PYBIND11_", "pybind11", "py::", "THP", "TORCH_EXTENSION_NAME", "Python\\.h"),
    *("torch::nn", "torch::optim", "torch::jit", "torch::data", "torch::autograd"),
    *("torch::save", "torch::load", "torch::linalg", "torch::fft", "torch::special"),
)
"""Regular expressions (POSIX) of names that `torch/types.h` does not declare."""
SHORT_HEADER = """#pragma once
#include <torch/types.h>
"""
WRAPPER = """#!/bin/sh
# Compiles with the short header, and with the whole one where that is not enough.
for argument in "$@"; do
    case "$argument" in *.cu) source=$argument ;; esac
done
if [ -n "${{source:-}}" ]; then
    if ! grep -Eq {names} "$source" 2> /dev/null; then
        {compiler} -I {headers} "$@" 2> /dev/null && exit 0
    fi
    echo "$source" >> {whole}
fi
exec {compiler} "$@"
"""
WHOLE = "whole_header"
"""File that lists the sources which were compiled with the whole header."""


def install(folder: str, compiler: str) -> None:
    """Let torch's builders call `compiler` (nvcc) through a wrapper below `folder`."""
    root = Path(folder, "short_headers")
    header = root / "include" / "torch" / "extension.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(SHORT_HEADER, encoding="ascii")
    wrapper = root / "nvcc"
    wrapper.write_text(
        WRAPPER.format(
            names=shlex.quote("|".join(WHOLE_HEADER_ONLY)),
            compiler=shlex.quote(compiler),
            headers=shlex.quote(str(root / "include")),
            whole=shlex.quote(str(root / WHOLE)),
        ),
        encoding="utf-8",
    )
    # The sandbox runs no program below /tmp, so the shell reads this one. ninja gives the whole
    # command to a shell.
    os.environ["PYTORCH_NVCC"] = f"/bin/sh {shlex.quote(str(wrapper))}"


def whole_header_sources(folder: str) -> list[str]:
    """Return the names of the sources that were compiled with the whole header, in order."""
    listed = Path(folder, "short_headers", WHOLE)
    if not listed.exists():
        return []
    lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
    return list(dict.fromkeys(os.path.basename(line) for line in lines))
