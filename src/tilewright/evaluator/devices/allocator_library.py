"""The library with which a runner allocates inside the judge's block, built once per machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tilewright.errors import InfrastructureError

__all__ = ["pool_library"]

SOURCE = Path(__file__).parent.parent.parent / "runner" / "native" / "pool.cpp"
COMMAND = ("-O2", "-shared", "-fPIC", "-std=c++17")


def pool_library(home: Path) -> Path:
    """Return the path of the built library.

    Raises:
        InfrastructureError: there is no C++ compiler, or it fails.
    """
    text = SOURCE.read_bytes()
    path = home / "native" / f"pool-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if path.exists():
        return path
    compiler = shutil.which("g++")
    if compiler is None:
        raise InfrastructureError("judging on a GPU needs g++, which is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [compiler, *COMMAND, str(SOURCE), "-o", str(fresh), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InfrastructureError(f"{SOURCE.name} cannot be built: {done.stderr[:500]}")
    fresh.chmod(0o755)
    fresh.rename(path)
    return path
