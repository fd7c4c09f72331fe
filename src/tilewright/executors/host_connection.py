"""A client's way to its warm host: find it, start it if allowed, and attach to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tilewright.config import whole_environment
from tilewright.evaluator.processes.host import ForkserverPlan
from tilewright.executors.host_key import host_environment, host_key
from tilewright.executors.host_messages import (
    ATTACH,
    STATUS,
    STOP,
    HostStatus,
    connect,
    decode_status,
    host_folder,
    log_of,
    remove,
)
from tilewright.wire.frames import Channel, ChannelClosed, DeadlineExceeded, Frame, FrameError
from tilewright.wire.readiness import is_readable

START_S = 20.0
"""Seconds within which a host must listen after its start."""
ANSWER_S, END_S = 5.0, 10.0
"""Seconds within which a host must answer a question, and end with all its supervisors."""
BATCH_VARIABLES = ("CI", "SLURM_JOB_ID")
"""Variables of services in which nobody waits for a second evaluation."""
_LOST = (ChannelClosed, DeadlineExceeded, FrameError)


def may_start(wanted: str, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Tell whether a host may be started under a value of the setting `host`."""
    batch = any(environment.get(name) for name in BATCH_VARIABLES)
    return wanted == "always" or (wanted == "auto" and terminal and not batch)


@dataclass(frozen=True)
class HostConnector:
    """Attaches to the host of this process, of a home and of these variables."""

    home: Path
    starts: bool
    """Whether to start a host if there is none."""
    environment: Callable[[], Mapping[str, str]] = field(default=whole_environment)
    arguments: tuple[str, ...] = ()
    """Further arguments of a host that is started."""

    def attach(self, plan: ForkserverPlan) -> Channel | None:
        """Return a channel on which a supervisor of the host will speak; `None`: no host.

        A supervisor that is not up yet begins with the forkserver of `plan`.
        """
        environment = host_environment(self.environment())
        try:
            path = host_folder() / f"{host_key(self.home, environment)}.sock"
        except OSError:
            return None
        channel = connect(path)
        if channel is None and self.starts and self._start(path, environment):
            channel = connect(path)
        if channel is not None:
            try:
                channel.send(ATTACH, {"forkserver": asdict(plan)})
            except _LOST:
                channel.close()
                return None
        return channel

    def _start(self, path: Path, environment: Mapping[str, str]) -> bool:
        """Start a host, and tell whether it listens."""
        command = [sys.executable, "-P", "-m", "tilewright.executors.host_process"]
        command += ["--socket", str(path), "--home", os.path.abspath(self.home), *self.arguments]
        try:
            with open(log_of(path), "ab") as log:
                started = subprocess.run(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=False,
                    timeout=START_S,
                )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return started.returncode == 0


def running_hosts() -> Iterator[tuple[Path, HostStatus]]:
    """Yield the socket and the state of each warm host of this user; remove what others left.

    Raises:
        PermissionError: the folder of the hosts is not one of this user alone.
    """
    for path in sorted(host_folder().glob("*.sock")):
        channel = connect(path)
        if channel is None:
            remove(path)
        elif (frame := _ask(channel, STATUS)) is not None:
            with suppress(FrameError):
                yield path, decode_status(frame)


def stop_host(path: Path) -> bool:
    """Stop the host that listens at a path, and tell whether it is gone."""
    channel = connect(path)
    if channel is None:
        return True
    frame = _ask(channel, STOP)
    if frame is None or type(frame.fields.get("pid")) is not int:
        return False
    try:
        process = os.pidfd_open(frame.fields["pid"])
    except ProcessLookupError:
        return True
    try:
        return is_readable(process, END_S)
    finally:
        os.close(process)


def _ask(channel: Channel, kind: str) -> Frame | None:
    """Return a host's answer to a question; `None`: it gives none."""
    try:
        channel.send(kind)
        return channel.receive(time.monotonic() + ANSWER_S)
    except _LOST:
        return None
    finally:
        channel.close()
