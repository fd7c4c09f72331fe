"""Confinements and attacks for the tests of the sandbox."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.runner.sandbox import isolation
from tilewright.runner.sandbox.isolation import Confinement, fork_confined

SOURCE = Path(isolation.__file__).parents[2]
VIEW = (
    *("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"),
    *(sys.prefix, sys.base_prefix, str(SOURCE)),
)
CORE = min(os.sched_getaffinity(0))
WHOLE = Confinement(
    read_only=VIEW,
    writable_tmp_bytes=32 << 20,
    uid=61_000 + os.getpid() % 1000,
    memory_bytes=4 << 30,
    file_bytes=16 << 20,
    processes=64,
    descriptors=256,
    core=(CORE,),
    environment={"PATH": "/usr/bin", "HOME": "/tmp"},
    keep_fds=(),
)
NONE = replace(WHOLE, layers=frozenset())

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


def run(confinement: Confinement, attack: Callable[[], object]) -> str:
    """Return what `attack` returns in a sandbox, or the name of the error that it raised."""
    read_end, write_end = os.pipe()

    def main(_: dict[str, str]) -> int:
        try:
            answer = str(attack())
        except (OSError, MemoryError) as error:
            answer = type(error).__name__
        os.write(write_end, answer.encode())
        return 0

    try:
        kept = (*confinement.keep_fds, write_end)
        pid = fork_confined(replace(confinement, keep_fds=kept), main)
    finally:
        os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(pid, 0)
    return text


def ends(main: Callable[[dict[str, str]], int], confinement: Confinement = WHOLE) -> bytes:
    """Return what stands on the status pipe after `main` ran."""
    read_end, write_end = os.pipe()
    try:
        pid = fork_confined(confinement, main, status_fd=write_end)
    finally:
        os.close(write_end)
    with os.fdopen(read_end, "rb") as status:
        text = status.read()
    os.waitpid(pid, 0)
    return text


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
