"""Evaluation on this machine, in a supervisor process of our own. Needs no torch here."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tilewright import errors
from tilewright.contestant.frames import Channel, ChannelClosed, DeadlineExceeded, FrameError
from tilewright.records import EvalReport, EvalRequest

__all__ = ["LocalExecutor"]

START_S = 60.0
Progress = Callable[[str, dict[str, Any]], None]


def _silent(event: str, fields: dict[str, Any]) -> None:
    """Ignore progress."""


class LocalExecutor:
    """A supervisor and everything below it. Lifetime: until `close`, or the end of this process.

    Safe to use from several threads; evaluations are made one after the other.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = _silent,
        *,
        checks: tuple[str, ...] | None = None,
    ) -> EvalReport:
        """Judge one candidate and return the report.

        Raises:
            TilewrightError: the problem cannot be used, or our side failed.
        """
        with self._lock:
            try:
                return self._exchange(request, progress, checks)
            except (ChannelClosed, DeadlineExceeded, FrameError) as error:
                self._stop()
                raise errors.InfrastructureError(f"the supervisor was lost: {error}") from error
            except BaseException as error:
                # An interrupt leaves the exchange half done; the next one starts afresh.
                if not isinstance(error, errors.TilewrightError):
                    self._stop()
                raise

    async def evaluate_async(
        self, request: EvalRequest, progress: Progress = _silent
    ) -> EvalReport:
        """Judge one candidate without blocking the event loop."""
        return await asyncio.to_thread(self.evaluate, request, progress)

    def _exchange(
        self, request: EvalRequest, progress: Progress, checks: tuple[str, ...] | None
    ) -> EvalReport:
        channel = self._channel or self._start()
        fields = {"checks": None if checks is None else list(checks)}
        channel.send("evaluate", fields, request.to_json().encode())
        while True:
            frame = channel.receive()
            if frame.kind == "event":
                event = frame.fields.pop("event")
                progress(event, frame.fields)
            elif frame.kind == "broken":
                # It ends with its own error; the next evaluation starts another.
                self._stop()
                raise errors.InfrastructureError(frame.fields["message"])
            elif frame.kind == "failed":
                kind = getattr(errors, frame.fields["type"], errors.InfrastructureError)
                raise kind(frame.fields["message"])
            else:
                return EvalReport.from_json(frame.body)

    @property
    def pid(self) -> int | None:
        """Return the supervisor's process id, or `None` before the first evaluation."""
        return None if self._process is None else self._process.pid

    def _start(self) -> Channel:
        ours, theirs = socket.socketpair()
        try:
            self._home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise errors.ConfigError(
                f"home {self._home}: cannot be made ({error.strerror}); set TILEWRIGHT_HOME"
            ) from error
        command = [sys.executable, "-m", "tilewright.evaluator.supervisor"]
        command += ["--channel", str(theirs.fileno()), "--home", str(self._home)]
        self._process = subprocess.Popen(
            command,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            # An interrupt of the terminal reaches us alone; we end the supervisor.
            process_group=0,
        )
        theirs.close()
        channel = Channel(ours)
        channel.receive(time.monotonic() + START_S)
        self._channel = channel
        return channel

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def close(self) -> None:
        """End the supervisor and wait until it is gone."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()
