"""Weights & Biases: a folder of the run. It uploads nothing, unless WANDB_MODE says so."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright import config
from tilewright.integrations.packages import WANDB, require
from tilewright.integrations.run_loggers import Destination, described
from tilewright.integrations.run_series import BestCandidate, Point
from tilewright.records.events import RunStarted

require(WANDB)

import wandb  # noqa: E402

STEP = "step"
"""The curve that is the horizontal axis of all others."""


INIT_S = 15.0
"""Most seconds until the service of an online run answers."""


WRITE_S = 5.0
"""Most seconds until the file of a finished run is on disk."""


def _size(folder: Path, key: str) -> int:
    """Return the bytes of the newest file of a run; a resumed run has several."""
    found = [file.stat() for file in folder.glob(f"offline-*/run-{key}.wandb")]
    newest = max(found, key=lambda item: item.st_mtime_ns, default=None)
    return 0 if newest is None else newest.st_size


def _check_space(folder: Path, count: int) -> None:
    """Raise `OSError` if a file of this many bytes has no place in a folder."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < count:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


class _Wandb:
    def __init__(self, run: Any) -> None:  # noqa: ANN401 - wandb's run
        self.key = str(run.id)
        self._run, self._least_bytes = run, 0
        run.define_metric(STEP)
        run.define_metric("*", step_metric=STEP)

    def send(self, points: Sequence[Point]) -> None:
        """Log each point; its place is a curve, since wandb's own step must always grow."""
        for point in points:
            self._run.log({**point.values, STEP: point.step})
            self._least_bytes += sum(map(len, point.values))

    def keep(self, candidate: BestCandidate, folder: Path) -> None:
        """Log the files as an artefact."""
        name = f"best-{candidate.problem.replace('/', '-')}"
        artefact = wandb.Artifact(name, type="candidate")
        artefact.add_dir(str(folder))
        self._run.log_artifact(artefact)

    def close(self) -> None:
        """Write everything."""
        self._run.finish()
        if not self._run.offline:
            return
        # wandb writes in a process of its own, which ends later and whose errors stay there.
        folder = Path(self._run.settings.sync_dir).parent
        end = time.monotonic() + WRITE_S
        while (missing := self._least_bytes - _size(folder, self.key)) > 0:
            # At once if the disk is full: the end of a run should not wait for it.
            _check_space(folder, missing)
            if time.monotonic() > end:
                raise OSError(errno.EIO, f"the file of run {self.key} in {folder} is incomplete")
            time.sleep(0.05)


def opened(run: Path, to: Destination, begun: RunStarted) -> _Wandb:
    """Open a run in RUN/wandb; a resumed one keeps its id."""
    config.with_defaults(
        {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_PROJECT": "tilewright"}
    )
    made = wandb.init(
        dir=str(run.resolve()),
        name=to.name,
        id=to.key or None,
        resume="allow" if to.key else None,
        config=described(begun),
        reinit="create_new",
        settings=wandb.Settings(
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            init_timeout=INIT_S,
        ),
    )
    return _Wandb(made)
