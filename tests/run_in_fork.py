"""Runs a function in a fork of this process, and keeps the coverage data of the fork.

A process does not regain a privilege that a step of the sandbox drops; so each step runs in a fork.
A confined fork cannot write its coverage file: a pipe carries its coverage data to the parent.
"""

from __future__ import annotations

import os
import pickle
import posix
import select
import traceback
from collections.abc import Callable
from typing import TypeVar

import coverage

Answer = TypeVar("Answer")
WAIT_S = 60.0


def in_fork(step: Callable[[], Answer]) -> Answer:
    """Return what `step` returns in a fork.

    Raises:
        AssertionError: it raised, with its traceback, or the fork died.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Coverage's own would write to the parent's file, here and in every further fork.
        os._exit = posix._exit  # type: ignore[assignment]
        try:
            _tell(write_end, step)
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        ready, _, _ = select.select([read_end], [], [], WAIT_S)
        with os.fdopen(read_end, "rb") as file:
            data = file.read() if ready else b""
    finally:
        os.waitpid(pid, 0)
    assert data, "the fork died before it answered"
    failed, answer, measured = pickle.loads(data)  # noqa: S301 - our own fork
    current = coverage.Coverage.current()
    if current is not None and measured:
        seen = coverage.CoverageData(no_disk=True)
        seen.loads(measured)
        current.get_data().update(seen)
    assert not failed, answer
    return answer


def _tell(write_end: int, step: Callable[[], object]) -> None:
    _begin_measuring()
    try:
        answer: tuple[bool, object] = (False, step())
    except BaseException:  # noqa: BLE001 - the parent shows it
        answer = (True, traceback.format_exc())
    rest = pickle.dumps((*answer, _measured()))
    while rest:
        rest = rest[os.write(write_end, rest) :]


def _begin_measuring() -> None:
    current = coverage.Coverage.current()
    if current is not None and current._collector is not None:
        current._collector.covdata = coverage.CoverageData(no_disk=True)


def _measured() -> bytes:
    current = coverage.Coverage.current()
    if current is None or current._collector is None:
        return b""
    current.stop()
    current._collector.flush_data()
    return bytes(current._collector.covdata.dumps())
