"""The log of a study: all figures that its page shows, in one file. No torch.

The page is a function of this file alone, so it can be drawn again without a GPU and a training.
"""

from __future__ import annotations

import gzip
import json
import platform
import zlib
from importlib import metadata
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.errors import RecordError, writing
from tilewright.records.event_log import read_events
from tilewright.records.events import RunStarted
from tilewright.rl.study import study_folder
from tilewright.rl.study.arm_faults import stopped_because
from tilewright.rl.study.fresh_scores import fresh_log
from tilewright.rl.study.references import best_so_far, bests_of, judged_turns, reference_log
from tilewright.rl.study.scaling import SCALING
from tilewright.rl.study.study_config import StudyConfig
from tilewright.rl.study.study_folder import StudyFolder

LOG = "study-log.json.gz"
FORMAT = 1
PACKAGES = ("torch", "transformers", "trl", "triton")


def study_log(folder: StudyFolder, seconds: dict[str, float]) -> dict[str, Any]:
    """Return settings, versions, gate, and the figures of every step of every arm."""
    config, arms = folder.config, dict[str, dict[str, Any]]()
    for name, seed in config.runs():
        place = folder.arm(name, seed)
        turns = judged_turns(place)
        arms.setdefault(name, {})[str(seed)] = {
            "figures": study_folder.figures_of(place),
            "stopped": stopped_because(place),
            "programs": len(turns),
            "best": bests_of(turns),
            "best_so_far": best_so_far(turns),
        }
    return {
        "format": FORMAT,
        "study": config.model_dump(mode="json"),
        "versions": _versions(),
        "device": _device(folder),
        "gate": _json(folder.path / study_folder.GATE, []),
        "arms": arms,
        "reference": reference_log(folder),
        "scaling": _json(folder.path / SCALING, {}),
        "fresh": fresh_log(folder),
        "seconds": seconds,
    }


def _json(path: Path, absent: Any) -> Any:  # noqa: ANN401 - JSON
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else absent


def write_log(path: Path, log: dict[str, Any]) -> None:
    """Write a log; equal logs give equal bytes."""
    text = json.dumps(log, separators=(",", ":"))
    with writing(path):
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_log(path: Path) -> dict[str, Any]:
    """Return the log in a file, or raise `RecordError`."""
    try:
        found = json.loads(gzip.decompress(path.read_bytes()))
        if found["format"] != FORMAT:
            raise RecordError(f"{path}: format {found['format']!r}; this version reads {FORMAT}")
        StudyConfig.model_validate(found["study"])
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} is no log of a study: {error}") from error
    # Logs of older versions have none of these.
    for run in (run for seeds in found["arms"].values() for run in seeds.values()):
        run.setdefault("best_so_far", [])
    return {"reference": {}, "scaling": {}, **found}


def _versions() -> dict[str, str]:
    found = {"tilewright": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _device(folder: StudyFolder) -> str:
    """Return the model of the device that judged, as the first arm's log says."""
    for name, seed in folder.config.runs():
        run = study_folder.run_in(folder.arm(name, seed))
        if run is not None:
            first = next(iter(read_events(run, left_out=lambda _: None)), None)
            return first.device if isinstance(first, RunStarted) else ""
    return ""
