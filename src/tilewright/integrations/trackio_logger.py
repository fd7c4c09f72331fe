"""trackio: its own folder on this machine. It uploads nothing, unless its settings say so."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from tilewright.integrations.packages import TRACKIO, require
from tilewright.integrations.run_loggers import Destination, described
from tilewright.integrations.run_series import BestCandidate, Point
from tilewright.records.events import RunStarted

require(TRACKIO)

import trackio  # noqa: E402

PROJECT = "tilewright"


class _Trackio:
    def __init__(self, run: trackio.Run) -> None:
        self.key = str(run.name)
        self._run = run

    def send(self, points: Sequence[Point]) -> None:
        """Log each point."""
        for point in points:
            self._run.log(point.values, step=point.step)

    def keep(self, candidate: BestCandidate, folder: Path) -> None:
        """Log the files as an artefact."""
        name = f"best-{candidate.problem.replace('/', '-')}"
        self._run.log_artifact(folder, name=name, type="candidate")

    def close(self) -> None:
        """Wait until everything is on disk."""
        with redirect_stdout(StringIO()):
            trackio.finish()


def opened(run: Path, to: Destination, begun: RunStarted) -> _Trackio:  # noqa: ARG001
    """Open the run of this name; a resumed run continues it."""
    # It prints, and the output of a command may be JSON.
    with redirect_stdout(StringIO()):
        made = trackio.init(
            project=PROJECT,
            name=to.name,
            config=described(begun),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
    return _Trackio(made)
