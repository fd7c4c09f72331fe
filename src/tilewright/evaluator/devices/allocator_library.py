"""The library with which a runner allocates inside the judge's block, built once per machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tilewright.errors import InfrastructureError

SOURCE = Path(__file__).parents[2] / "runner" / "native" / "pool.cpp"


def pool_library(home: Path) -> Path:
    """Return the path of the built library; raise `InfrastructureError` without a C++ compiler."""
    text = SOURCE.read_bytes()
    path = home / "native" / f"pool-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if path.exists():
        return path
    compiler = shutil.which("g++")
    if compiler is None:
        raise InfrastructureError("judging on a GPU needs g++, which is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O2", "-shared", "-fPIC", "-std=c++17"]
    command += [str(SOURCE), "-o", str(fresh), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfrastructureError(f"{SOURCE.name} cannot be built: {done.stderr[:500]}")
    fresh.chmod(0o755)
    fresh.rename(path)
    return path
