"""The gate of a study folder: samples the cold-started model, and writes the lines."""

from __future__ import annotations

import dataclasses
import json

from tilewright import config
from tilewright.errors import ConfigError, writing
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.problems.imported_sets import find_problems
from tilewright.records.run_folder import create_run
from tilewright.records.whole_files import write_whole
from tilewright.rl.engines.trl.model_samples import sample_model
from tilewright.rl.study import study_folder
from tilewright.rl.study.gate import GateLine, gate_lines, gate_samples, plan_table
from tilewright.rl.study.stages import training_of
from tilewright.rl.study.study_folder import StudyFolder


def run_gate(folder: StudyFolder, on_event: OnEvent) -> list[GateLine]:
    """Return the lines of the gate, and write them where the study looks for them.

    `on_event` receives the events of evaluations.

    Raises:
        ConfigError: the study has no cold-started model yet.
        InfrastructureError: the judge fails.
    """
    if folder.cold_model is None:
        raise ConfigError(f"{folder.path} has no cold-started model yet; run train study first")
    section, group = folder.config.gate, folder.config.group
    count = len(find_problems(group, config.load().home))
    changes = {
        "model.path": str(folder.cold_model),
        "overrides.sampling.prompts": count,
        "overrides.sampling.rollouts": max(section.trajectories // count, 1),
        "overrides.sampling.turns": section.turns,
    }
    settings = training_of(folder, changes)
    place = folder.path / study_folder.SAMPLES
    run = study_folder.run_in(place) or create_run(place, config.dump(settings))
    played = sample_model(settings, run, on_event)
    plans = plan_table(group.partition("/")[2])
    lines = gate_lines(gate_samples(played, plans), settings.estimator())
    _write(folder, lines)
    return lines


def _write(folder: StudyFolder, lines: list[GateLine]) -> None:
    passed = all(line.held for line in lines) or folder.config.gate.override
    name = study_folder.GATE if passed else study_folder.GATE_REFUSED
    with writing(folder.path):
        text = json.dumps([dataclasses.asdict(line) for line in lines], indent=1)
        write_whole(folder.path / name, text)
