"""The test-time scaling of a study folder: samples a trained model with each context."""

from __future__ import annotations

import json
from collections.abc import Callable

from tilewright import config
from tilewright.errors import ConfigError, writing
from tilewright.loop.answer_evaluator import OnEvent
from tilewright.problems.imported_sets import find_problems
from tilewright.records.run_folder import create_run
from tilewright.records.whole_files import write_whole
from tilewright.rl.engines.trl.model_samples import sample_model
from tilewright.rl.study import study_folder
from tilewright.rl.study.scaling import SCALING, Figures, scaling_figures, shown_turns
from tilewright.rl.study.stages import training_of
from tilewright.rl.study.study_folder import StudyFolder, finished_model


def run_scaling(
    folder: StudyFolder, on_event: OnEvent, reached: Callable[[int, int, str], None]
) -> dict[str, Figures]:
    """Return the figures of each context, and write them where the study looks for them.

    `on_event` receives the events of evaluations, and `reached` the number of finished contexts,
    the number of all, and the one that begins.

    Raises:
        ConfigError: the study has no test-time scaling, or its arm has no model yet.
        InfrastructureError: the judge fails.
    """
    section, arm = folder.config.scaling, folder.scaled_arm
    if section is None or arm is None:
        raise ConfigError(f"{folder.path}: the settings of this study have no section `scaling`")
    model = finished_model(arm)
    if model is None:
        raise ConfigError(f"{arm} has no trained model yet; run train study first")
    changes = {
        "model.path": str(model),
        "overrides.sampling.prompts": len(find_problems(folder.config.group, config.load().home)),
        "overrides.sampling.rollouts": section.samples,
        "overrides.sampling.turns": section.turns,
    }
    settings, found = training_of(folder, changes), dict[str, Figures]()
    for number, context in enumerate(section.contexts):
        reached(number, len(section.contexts), f"context {context}")
        place = folder.path / study_folder.SCALED / context
        run = study_folder.run_in(place) or create_run(place, config.dump(settings))
        shown = shown_turns(context, section.w, settings.estimator().reward)
        played = sample_model(settings, run, on_event, shown=shown)
        found[context] = scaling_figures(played.turns)
    with writing(folder.path):
        write_whole(folder.path / SCALING, json.dumps(found))
    return found
