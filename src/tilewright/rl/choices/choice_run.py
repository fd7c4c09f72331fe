"""The run folder of learning to choose: its trees, its event log, its batches and scores."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tilewright._version import __version__
from tilewright.errors import ConfigError, writing
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.event_log import EventLog, read_events
from tilewright.records.events import WITHOUT_DEVICE, RunStarted, Stepped, TurnFinished
from tilewright.records.run_folder import PROBLEMS
from tilewright.rl.choices.action_tree import ActionTree, read_trees
from tilewright.rl.choices.choice_batches import ChoiceEpisode, ChoiceModel, ChoicePlay
from tilewright.rl.choices.choice_estimates import Figures
from tilewright.rl.choices.choice_log import (
    KIND,
    LANGUAGE,
    SCORE,
    SHARED,
    STEP,
    episode_turns,
    root_turn,
)
from tilewright.rl.choices.policy_values import policy_values
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.training_folder import was_begun
from tilewright.rl.trajectories import drawn_problems, trajectories_of

TREES, HELD_OUT_TREES = "trees.jsonl", "held_out_trees.jsonl"


class ChoiceRun:
    """Plays and records the batches of a training. Lifetime: one session of a run."""

    def __init__(self, config: TrainConfig, folder: Path) -> None:
        self.config, self.folder, self.preset = config, folder, config.estimator()
        fresh = not was_begun(folder)
        self.trees = read_trees(Path(config.data.trees) if fresh else folder / TREES)
        held = Path(config.data.held_out_trees) if fresh else folder / HELD_OUT_TREES
        self.held_out = read_trees(held) if config.data.held_out_trees else []
        check_trees(self.trees, self.held_out)
        events = [] if fresh else list(read_events(folder))
        turns = [event.turn for event in events if isinstance(event, TurnFinished)]
        past = {turn.ask.id: turn.choice for turn in turns if turn.choice is not None}
        self._written = {turn.ask.id for turn in turns}
        self._steps = {(e.batch, e.step) for e in events if isinstance(e, Stepped)}
        self.log = EventLog(folder)
        if fresh:
            self._begin()
        # A kill may come between the first event and these.
        roots = [turn for turn in map(root_turn, self.trees) if turn.ask.id not in self._written]
        self.log.extend(TurnFinished(turn=turn) for turn in roots)
        by_problem = {tree.problem: tree for tree in self.trees}
        self._play = ChoicePlay(by_problem, self.preset, config.seed, past)

    def play(self, step: int, model: ChoiceModel) -> list[ChoiceEpisode]:
        """Return the episodes of a step, from 0, and write them into the log."""
        section = self.preset.sampling
        names = [tree.problem for tree in self.trees]
        drawn = drawn_problems(names, section.prompts, step, self.config.seed)
        first = step * section.prompts * section.rollouts
        trajectories = trajectories_of(f"{STEP}{step:05}", drawn, section.rollouts, first)
        episodes = self._play.play(trajectories, model)
        turns = [turn for item in episodes for turn in episode_turns(item, model.name)]
        fresh = [turn for turn in turns if turn.ask.id not in self._written]
        self._written |= {turn.ask.id for turn in fresh}
        self.log.extend(TurnFinished(turn=turn) for turn in fresh)
        return episodes

    def record(self, step: int, batch: str, figures: Figures) -> None:
        """Write the figures of a batch into the log, unless an earlier session did."""
        if (batch, step) not in self._steps:
            self._steps.add((batch, step))
            self.log.append(Stepped(step=step, batch=batch, figures=figures))

    def score(self, step: int, model: ChoiceModel) -> Figures:
        """Write the values of the policy on the trees after so many steps; return them.

        `policy_values` says when they are exact.
        """
        found: Figures = {}
        batch = f"{SCORE}{step:05}"
        for name, trees in (("train", self.trees), ("held_out", self.held_out)):
            values = {
                tree.problem: policy_values(tree, self.preset, model, self.config.seed, batch)
                for tree in trees
            }
            for problem, row in values.items():
                found |= {f"{name}/{problem}/{policy}": value for policy, value in row.items()}
            for policy in SHARED if values else ():
                shares = [row[policy] / row["best"] for row in values.values() if row["best"] > 0]
                found[f"{name}/{policy}_share"] = sum(shares) / len(shares) if shares else None
        self.record(step, batch, found)
        return found

    def close(self) -> None:
        """Release the log."""
        self.log.close()

    def _begin(self) -> None:
        given = self.config.data
        with writing(self.folder):
            shutil.copyfile(given.trees, self.folder / TREES)
            if given.held_out_trees:
                shutil.copyfile(given.held_out_trees, self.folder / HELD_OUT_TREES)
            lines = "".join(f"{item.to_json()}\n" for item in self._problems())
            (self.folder / PROBLEMS).write_text(lines, encoding="utf-8")
        self.log.append(
            RunStarted(
                kind=KIND,
                name=self.preset.name,
                problems=given.problems,
                protocols=(self.trees[0].by_id[self.trees[0].root].verdict.protocol,),
                language=LANGUAGE,
                evaluator=__version__,
                device=WITHOUT_DEVICE,
            )
        )

    def _problems(self) -> Iterable[Problem]:
        """Return the problems of the trees, for pages; those at `data.problems` are known."""
        known = find_problems(self.config.data.problems, self.config.settings.home)
        names = {tree.problem for tree in self.trees}
        return [problem for problem in known if problem.id in names]


def check_trees(trees: Sequence[ActionTree], held_out: Sequence[ActionTree]) -> None:
    """Refuse two trees of one problem, and a held-out tree of a training problem.

    Raises:
        ConfigError: there are such trees; the message names the problem.
    """
    names = [tree.problem for tree in trees]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"data.trees has two trees of {twice[0]}")
    if shared := sorted({tree.problem for tree in held_out} & set(names)):
        raise ConfigError(
            f"data.held_out_trees has a tree of {shared[0]}, which is a training problem: a value "
            "on it would show nothing"
        )
