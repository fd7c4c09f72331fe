"""MLflow: the store that MLFLOW_TRACKING_URI names, or a database next to the run folder."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path

from tilewright import config
from tilewright.integrations.packages import MLFLOW, require
from tilewright.integrations.run_loggers import Destination, described
from tilewright.integrations.run_series import BestCandidate, Point
from tilewright.records.events import RunStarted

require(MLFLOW)
# MLflow reads its settings when it is imported, and reports its use to its makers by default.
config.with_defaults(
    {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    }
)

from mlflow.entities import Metric, Param  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402

EXPERIMENT = "tilewright"
MAX_BATCH = 1000
"""Most metrics of one call, which MLflow sets."""
_REFUSED = re.compile(r"[^\w\-. :/]")
"""Characters that a name of MLflow must not have."""


class _Mlflow:
    def __init__(self, client: MlflowClient, key: str) -> None:
        self._client, self.key = client, key

    def send(self, points: Sequence[Point]) -> None:
        """Log the points in batches."""
        now = int(time.time() * 1000)
        found = [
            Metric(_REFUSED.sub("_", name), value, now, point.step)
            for point in points
            for name, value in point.values.items()
        ]
        for first in range(0, len(found), MAX_BATCH):
            self._client.log_batch(self.key, metrics=found[first : first + MAX_BATCH])

    def keep(self, candidate: BestCandidate, folder: Path) -> None:
        """Log the files as artefacts."""
        self._client.log_artifacts(self.key, str(folder), f"best/{candidate.problem}")

    def close(self) -> None:
        """Mark the run as finished."""
        self._client.set_terminated(self.key)


def opened(run: Path, to: Destination, begun: RunStarted) -> _Mlflow:
    """Open a run of the experiment `tilewright`; a resumed one keeps its id."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    parent = run.resolve().parent
    given = config.environment(["MLFLOW_TRACKING_URI"]).get("MLFLOW_TRACKING_URI")
    client = MlflowClient(given or f"sqlite:///{parent / 'mlflow.db'}")
    if to.key:
        return _Mlflow(client, to.key)
    found = client.get_experiment_by_name(EXPERIMENT)
    if found is None:
        place = None if given else (parent / "mlflow-artifacts").as_uri()
        experiment = client.create_experiment(EXPERIMENT, artifact_location=place)
    else:
        experiment = found.experiment_id
    made = client.create_run(experiment, run_name=to.name)
    params = [Param(name, value) for name, value in described(begun).items() if value]
    client.log_batch(made.info.run_id, params=params)
    return _Mlflow(client, made.info.run_id)
