"""TensorBoard: event files below the run folder. It needs no service and loads no torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tilewright.integrations.packages import TENSORBOARD, require
from tilewright.integrations.run_loggers import Destination, described
from tilewright.integrations.run_series import BestCandidate, Point
from tilewright.records.events import RunStarted

require(TENSORBOARD)

from tensorboard.compat.proto.event_pb2 import Event  # noqa: E402
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata  # noqa: E402
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # noqa: E402
from tensorboard.compat.proto.types_pb2 import DT_STRING  # noqa: E402
from tensorboard.plugins.text.metadata import create_summary_metadata  # noqa: E402
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: E402

FOLDER = "tensorboard"
"""Folder of a run that holds its event files."""


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        self.key = str(folder)
        self._step = 0
        self._writer = EventFileWriter(self.key)

    def send(self, points: Sequence[Point]) -> None:
        """Write each point as an event of scalars."""
        for point in points:
            self._step = point.step
            values = [Summary.Value(tag=n, simple_value=v) for n, v in point.values.items()]
            self._add(Summary(value=values))
        self._writer.flush()

    def keep(self, candidate: BestCandidate, folder: Path) -> None:  # noqa: ARG002 - texts alone
        """Write the verdict and each file as a text."""
        shown = [("verdict", candidate.verdict), *((f.path, f.text) for f in candidate.files)]
        for name, text in shown:
            self._text(f"best/{candidate.problem}/{name}", f"```\n{text}\n```")

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def text(self, tag: str, text: str) -> None:
        """Write one text."""
        self._text(tag, text)

    def _text(self, tag: str, text: str) -> None:
        about: SummaryMetadata = create_summary_metadata(display_name=tag, description="")
        content = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
        self._add(Summary(value=[Summary.Value(tag=tag, metadata=about, tensor=content)]))

    def _add(self, summary: Summary) -> None:
        self._writer.add_event(Event(wall_time=time.time(), step=self._step, summary=summary))


def opened(run: Path, to: Destination, begun: RunStarted) -> _TensorBoard:
    """Open RUN/tensorboard/NAME; a resumed run adds a file to it."""
    made = _TensorBoard(run / FOLDER / to.name)
    if not to.key:
        lines = "\n".join(f"- {name}: {value}" for name, value in described(begun).items())
        made.text("run", lines)
    return made
