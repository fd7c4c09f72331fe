"""The folder of a study: where each stage leaves its result, and what is finished. No torch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.records.event_log import EVENTS, read_steps
from tilewright.records.whole_files import write_whole
from tilewright.rl.study.study_config import StudyConfig, first_difference
from tilewright.rl.training_folder import was_begun

STUDY, TRAINING, CONVERSATIONS = "study.yaml", "training.yaml", "conversations.jsonl"
STORE = "verdicts.jsonl.gz"
GATE, GATE_REFUSED = "gate.json", "gate-refused.json"
"""The lines of a gate that let the arms run, and those of one that does not."""
COLD, ARMS, SAMPLES, SCALED, LOGS = "cold", "arms", "gate", "scaling", "logs"
DONE, CENSUS_DONE, FRESH_DONE = "done", "census-done", "fresh-done"
"""Empty files: an arm has trained all of its steps; each program was evaluated, or is unjudged."""
TRAINED = "step"
"""Beginning of the names of batches that an arm trains on."""


@dataclass(frozen=True)
class StudyFolder:
    """A folder and the settings that it was made with."""

    path: Path
    config: StudyConfig

    @property
    def store(self) -> str:
        """The store of verdicts, as the setting `verdicts` of a training names it."""
        return "synthetic" if self.config.is_synthetic else str(self.path / STORE)

    @property
    def cold_model(self) -> Path | None:
        """The folder of the cold-started model, once it is there."""
        return finished_model(self.path / COLD)

    def arm(self, name: str, seed: int) -> Path:
        """Return the folder in which the run of an arm lies."""
        return self.path / ARMS / f"{name}-{seed}"

    @property
    def scaled_arm(self) -> Path | None:
        """The folder of the arm that test-time scaling samples, by its first seed."""
        if (section := self.config.scaling) is None:
            return None
        return self.arm(section.arm, self.config.arms[section.arm].first_seed)

    def training(self) -> dict[str, Any]:
        """Return the settings of `tilewright train` that all stages share."""
        tree = dict(self.config.training)
        data = dict(tree.get("data", {}))
        data |= {
            "conversations": [str(self.path / CONVERSATIONS)],
            "problems": self.config.group,
            "held_out": self.config.held_out,
        }
        return {**tree, "world": "book", "verdicts": self.store, "data": data}


def open_study(path: Path, config: StudyConfig) -> StudyFolder:
    """Return the folder of a study, which is made if it is not there.

    Raises:
        ConfigError: it belongs to a study with other settings; the message names one.
    """
    recorded = path / STUDY
    if recorded.exists():
        before = read_study(path).config
        ours, theirs = (each.model_dump(mode="json") for each in (config, before))
        if name := first_difference(ours, theirs):
            raise ConfigError(
                f"{path} was begun with another value of {name}: give the settings in {recorded}, "
                "or another --out"
            )
    else:
        with writing(path):
            write_whole(recorded, _yaml(config.model_dump(mode="json")))
    folder = StudyFolder(path.resolve(), config)
    with writing(path):
        write_whole(path / TRAINING, _yaml(folder.training()))
    return folder


def read_study(path: Path) -> StudyFolder:
    """Return the folder of a study that was begun.

    Raises:
        ConfigError: there is no study.
        RecordError: its settings are damaged.
    """
    recorded = path / STUDY
    if not recorded.is_file():
        raise ConfigError(f"{path} is no folder of a study: it has no {STUDY}")
    try:
        tree = yaml.safe_load(recorded.read_text(encoding="utf-8"))
        return StudyFolder(path.resolve(), StudyConfig.model_validate(tree))
    except (yaml.YAMLError, ValueError) as error:
        raise RecordError(f"{recorded}: {' '.join(str(error).split())[:200]}") from error


def _yaml(tree: dict[str, Any]) -> str:
    return yaml.safe_dump(tree, sort_keys=False)


def run_in(folder: Path) -> Path | None:
    """Return the run folder in the folder of a stage; `None`: nothing was begun."""
    found = sorted(path.parent for path in folder.glob("*/run.yaml"))
    return found[0] if found else None


def resumable_run(folder: Path) -> Path | None:
    """Return the run in the folder of a stage that can be resumed; `None`: there is none.

    A kill before the first event leaves nothing to resume, so that such a run is removed.
    """
    run = run_in(folder)
    if run is None or was_begun(run):
        return run
    shutil.rmtree(run)
    return None


def finished_model(folder: Path) -> Path | None:
    """Return the model that a stage leaves when it is finished."""
    run = run_in(folder)
    model = run / "model" if run is not None else None
    # The tokenizer is written last.
    whole = model is not None and (model / "tokenizer_config.json").is_file()
    return model if whole else None


def figures_of(folder: Path) -> list[dict[str, float | None]]:
    """Return the figures of the trained steps of an arm, in order."""
    run = run_in(folder)
    if run is None or not (run / EVENTS).exists():
        return []
    steps = read_steps(run)
    found = {item.step: item.figures for item in steps if item.batch.startswith(TRAINED)}
    return [found[step] for step in sorted(found)]
