"""The things that the earlier batches of a training give to a later one: rewards and exemplars."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilewright.records.events import Turn
from tilewright.rl.exemplar_archive import ExemplarArchive
from tilewright.rl.logged_rewards import LoggedReward, RewardLog, batch_of, rewards_by_request
from tilewright.rl.presets import Preset
from tilewright.rl.prompt_contexts import Contexts
from tilewright.rl.rollouts import RolloutBatch
from tilewright.rl.trajectories import Trajectory


class EarlierBatches:
    """The rewards and the correct programs of finished batches. Lifetime: one session of a run."""

    def __init__(
        self,
        preset: Preset,
        seed: int,
        contexts: Contexts,
        turns: Sequence[Turn],
        *,
        checks: bool,
    ) -> None:
        """`turns` are those of earlier sessions, in the order of the log."""
        self._preset, self._contexts, self._checks = preset, contexts, checks
        self._rewards = RewardLog()
        self._archive = ExemplarArchive(preset.exemplars, seed, turns)
        self._add_rewards(turns, contexts.turns())

    def with_exemplars(self, trajectories: list[Trajectory]) -> tuple[list[Trajectory], Contexts]:
        """Return trajectories that name their context, and these contexts.

        Without exemplars both are those that the run was begun with. All rollouts of a group have
        the same exemplars.
        """
        if self._preset.exemplars.selection == "none":
            return trajectories, self._contexts
        found = {
            item.group: self._archive.context(item.group, item.problem) for item in trajectories
        }
        named = [replace(item, context=item.group) for item in trajectories]
        return named, Contexts(found)

    def rewards(self, batch: str, problems: Iterable[str]) -> Mapping[str, Sequence[float]]:
        """Return the rewards before a batch that smoothing needs, by problem."""
        window = self._preset.smoothing.window
        return self._rewards.before(batch, problems, window) if window else {}

    def add(self, played: RolloutBatch) -> None:
        """Take in a finished batch."""
        turns = [turn for row in played.turns for turn in row if turn is not None]
        self._add_rewards(turns, played.stored)
        if self._preset.exemplars.selection != "none":
            self._archive.add(turns)

    def _add_rewards(self, turns: Sequence[Turn], stored: Mapping[str, Turn]) -> None:
        if self._preset.smoothing.window:
            section, checks = self._preset.reward, self._checks
            found = rewards_by_request(turns, section, checks=checks, stored=stored)
            batches: dict[str, list[LoggedReward]] = defaultdict(list)
            for turn in turns:
                if (value := found.get(turn.ask.id)) is not None:
                    place = turn.ask.problem, turn.ask.sample, turn.ask.turn
                    batches[batch_of(turn)].append(LoggedReward(*place, value))
            for name, rewards in batches.items():
                self._rewards.add(name, rewards)
