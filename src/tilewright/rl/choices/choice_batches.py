"""Batches of episodes: all of them advance step by step together, as a model scores their states.

Equal states pass the model once. The action and the coder's errors follow from the seed and the
name of the decision, so a resumed run repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tilewright.loop.choices import Normalisation, most_likely, sampled
from tilewright.loop.policies.base import Message
from tilewright.loop.random_values import chooser
from tilewright.records.events import Choice
from tilewright.rl.choices.action_tree import ActionTree
from tilewright.rl.choices.choice_episodes import (
    EditOutcome,
    EpisodeRules,
    Position,
    begun,
    decided,
    state_messages,
)
from tilewright.rl.choices.choice_rows import ChoicePrompt, ScoredChoices
from tilewright.rl.presets import Preset
from tilewright.rl.trajectories import Trajectory

ROOT = "root/"
"""Beginning of the id of the turn that holds a tree's initial program."""


class ChoiceModel(Protocol):
    """A model that scores options, with its current weights."""

    name: str

    def encode(self, messages: Sequence[Message], options: Sequence[str]) -> ChoicePrompt:
        """Return the tokens of a prompt, with its chat template, and of the options after it."""

    def score(self, states: Sequence[ChoicePrompt]) -> list[ScoredChoices]:
        """Return the log-probabilities of the options' tokens, and the critic's values."""


@dataclass(frozen=True)
class MadeChoice:
    """One choice and its consequence."""

    id: str
    parent: str
    """The turn that wrote the current program."""
    position: Position
    state: ChoicePrompt
    choice: Choice
    outcome: EditOutcome

    @property
    def sentences(self) -> tuple[str, ...]:
        """The options."""
        return self.position.node.sentences

    @property
    def code_id(self) -> str:
        """The turn that wrote the next program."""
        return f"{self.id}/code"


@dataclass(frozen=True)
class ChoiceEpisode:
    """The decisions of one trajectory."""

    trajectory: Trajectory
    decisions: tuple[MadeChoice, ...]


@dataclass
class _Walk:
    """An episode under way. Lifetime: one batch."""

    trajectory: Trajectory
    position: Position | None
    parent: str
    decisions: list[MadeChoice] = field(default_factory=list)


def rules_of(preset: Preset) -> EpisodeRules:
    """Return the rules of episodes from the settings."""
    section = preset.choices
    return EpisodeRules(
        max_steps=preset.sampling.turns,
        gamma=preset.returns.gamma,
        decay=section.decay,
        decay_form=section.decay_form,
        cumulative=section.cumulative,
        coder_success=section.coder_success,
    )


@dataclass(frozen=True)
class ChoicePlay:
    """Plays batches on the trees of a run. Lifetime: one session."""

    trees: Mapping[str, ActionTree]
    """By problem."""
    preset: Preset
    seed: int
    past: Mapping[str, Choice] = field(default_factory=dict)
    """Choices that earlier sessions recorded, by decision. They are taken again as they are."""
    greedy: bool = False
    """Whether the most likely option is taken, as a search does, and none is drawn."""

    def play(self, trajectories: Sequence[Trajectory], model: ChoiceModel) -> list[ChoiceEpisode]:
        """Return finished episodes."""
        rules, known = rules_of(self.preset), dict[ChoicePrompt, ScoredChoices]()
        walks = [
            _Walk(item, begun(self.trees[item.problem]), f"{ROOT}{item.problem}")
            for item in trajectories
        ]
        for step in range(rules.max_steps):
            active = [
                (walk, walk.position, self._state(walk.position, model))
                for walk in walks
                if walk.position is not None
            ]
            needed = [
                state
                for walk, _, state in active
                if walk.trajectory.ask_id(step) not in self.past and state not in known
            ]
            if fresh := list(dict.fromkeys(needed)):
                known |= zip(fresh, model.score(fresh), strict=True)
            for walk, position, state in active:
                name = walk.trajectory.ask_id(step)
                choice = self.past.get(name) or self._choice(name, position, known[state])
                self._advance(walk, name, position, state, choice, rules)
        return [ChoiceEpisode(walk.trajectory, tuple(walk.decisions)) for walk in walks]

    def _state(self, position: Position, model: ChoiceModel) -> ChoicePrompt:
        messages = state_messages(position, self.preset.choices.history)
        return model.encode(messages, position.node.sentences)

    def _choice(self, name: str, position: Position, scored: ScoredChoices) -> Choice:
        chances = scored.chances(position.node.sentences, self._rule)
        draw = chooser(self.seed, name, "action")
        taken = most_likely(chances) if self.greedy else sampled(chances, draw)
        return Choice(taken=taken, logprobs=scored.logprobs, value=scored.values[position.step])

    def _advance(
        self,
        walk: _Walk,
        name: str,
        position: Position,
        state: ChoicePrompt,
        choice: Choice,
        rules: EpisodeRules,
    ) -> None:
        sentence = position.node.sentences[choice.taken]
        outcome = decided(position, sentence, rules, chooser(self.seed, name, "coder"))
        made = MadeChoice(name, walk.parent, position, state, choice, outcome)
        walk.decisions.append(made)
        walk.position = outcome.after
        if outcome.program is not None and outcome.program.is_correct:
            walk.parent = made.code_id

    @property
    def _rule(self) -> Normalisation:
        return self.preset.choices.normalisation
