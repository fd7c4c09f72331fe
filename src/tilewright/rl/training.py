"""The settings of training: one typed tree in one YAML file. No torch is loaded here.

What an estimator leaves open stands in its preset; this adds the model, the data and the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from tilewright.config import Config, Section, load_around
from tilewright.errors import ConfigError
from tilewright.rl.presets import Preset, preset

__all__ = [
    "CheckpointSection",
    "DataSection",
    "FreshSection",
    "HealthSection",
    "LoraSection",
    "MachineSection",
    "ScoreSection",
    "StartSection",
    "TrainConfig",
    "load_training",
]


class FreshSection(Section):
    """A small model of Qwen3's shape, made on the spot where `model.path` is empty."""

    hidden: int = Field(default=128, ge=8)
    layers: int = Field(default=2, ge=1)
    heads: int = Field(default=4, ge=1)
    positions: int = Field(default=1024, ge=16)
    """The longest context."""
    vocabulary: int = Field(default=1024, ge=300)
    """Tokens at most; they are found in the data of the cold start."""
    tokens: Literal["lines", "bytes"] = "lines"
    """`lines` merges up to whole lines, which suits programs of few forms; `bytes` up to words."""


class LoraSection(Section):
    """Training of adapters instead of all weights."""

    rank: int = Field(default=0, ge=0)
    """0: all weights are trained."""
    alpha: float = Field(default=32.0, gt=0)
    targets: str = "all-linear"
    """Modules that get an adapter: `all-linear`, or names with commas."""


class StartSection(Section):
    """What is trained."""

    path: str = ""
    """Folder of a model; the model that `train sft` leaves is in RUN/model."""
    fresh: FreshSection = FreshSection()
    lora: LoraSection = LoraSection()


class DataSection(Section):
    """What it learns from."""

    conversations: tuple[str, ...] = ()
    """Files of JSON lines or parquet with `messages`, for the cold start."""
    longest: int = Field(default=18432, ge=1)
    """Tokens of a conversation; what is beyond is cut off."""
    problems: str = "bundled"
    """Address of the problems that are trained on."""
    held_out: str = ""
    """Address of problems that are only scored on; none of them may be trained on."""


class MachineSection(Section):
    """How it is computed; nothing here changes what is estimated."""

    device: Literal["cpu", "cuda"] = "cpu"
    precision: Literal["fp32", "bf16"] = "fp32"
    """Of sampling and updates alike; weights and moments are fp32 in any case."""
    threads: int = Field(default=0, ge=0)
    """Of torch on a CPU; 0: as many as it likes. A resumed run repeats bits with equal ones."""
    sampled_together: int = Field(default=64, ge=1)
    """Prompts that the sampler answers at once."""
    rows_together: int = Field(default=16, ge=1)
    """Rows of one forward and backward pass, on average."""
    recompute: bool = False
    """Recompute activations in the backward pass: less memory, more time."""


class CheckpointSection(Section):
    """What a killed run goes on from."""

    every: int = Field(default=10, ge=1)
    """Steps."""
    keep: int = Field(default=2, ge=1)
    """How many are kept; older ones go."""


class ScoreSection(Section):
    """When held-out problems are scored; how many samples and turns is the preset's."""

    every: int = Field(default=0, ge=0)
    """Steps; 0: at the end alone."""


class HealthSection(Section):
    """What is watched."""

    warn_unjudged: float = Field(default=0.01, ge=0, le=1)
    """Share of a batch's turns; they are not missing at random."""
    stop_unjudged: float = Field(default=0.05, ge=0, le=1)
    reference: bool = True
    """Measure how far the model is from the one that it began as, at the cost of a copy of it."""
    log: Literal["none", "tensorboard", "trackio"] = "none"
    """Where figures go beside the event log."""


class TrainConfig(Section):
    """Every setting of `tilewright train`."""

    preset: str = "tilewright"
    """Where the estimator begins: `paper`, `released_code` or `tilewright`."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Settings of the preset that are to differ, by section."""
    seed: int = Field(default=0, ge=0)
    """Of the order of problems, of what is sampled, of PRS, and of fresh weights."""
    world: str = "evaluator"
    """Who judges: the `evaluator`, or a made-up landscape by its name."""
    own_kernels: bool = True
    """Reject what launches no kernel of its own, also in plain torch, whatever the rules say."""
    model: StartSection = StartSection()
    data: DataSection = DataSection()
    machine: MachineSection = MachineSection()
    checkpoints: CheckpointSection = CheckpointSection()
    scores: ScoreSection = ScoreSection()
    health: HealthSection = HealthSection()
    settings: Config = Config()
    """The settings of every other verb."""

    def estimator(self) -> Preset:
        """Return the preset with its overrides.

        Raises:
            ConfigError: there is no such preset or setting.
        """
        tree = preset(self.preset).model_dump()
        _lay_over(tree, self.overrides, "overrides")
        if self.overrides:
            tree["name"] = f"{self.preset}, changed"
        try:
            return Preset.model_validate(tree)
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"overrides.{path}: {first['msg']} (got {first['input']!r})"
            ) from error


def load_training(file: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Return the settings of a training, after `file` and each `path=value` of `overrides`.

    Raises:
        ConfigError: a file or a value is wrong; the message names it.
    """
    found = load_around(TrainConfig, "settings", file, overrides)
    sampling = found.estimator().sampling
    if sampling.top_k != 0 or sampling.top_p != 1.0:
        raise ConfigError(
            f"sampling.top_k is {sampling.top_k} and top_p {sampling.top_p:g}: a cut distribution "
            "is not the one whose log-probabilities are trained; give 0 and 1"
        )
    if sampling.reply_tokens >= sampling.context_tokens:
        raise ConfigError(
            f"sampling.reply_tokens {sampling.reply_tokens} leaves no room for a prompt in "
            f"context_tokens {sampling.context_tokens}"
        )
    return found


def _lay_over(tree: dict[str, Any], more: dict[str, Any], where: str) -> None:
    for key, value in more.items():
        if key not in tree or key == "name":
            known = ", ".join(name for name in tree if name != "name")
            raise ConfigError(f"{where}.{key}: no such setting; there are {known}")
        if isinstance(tree[key], dict):
            if not isinstance(value, dict):
                raise ConfigError(f"{where}.{key} is a section, not {value!r}")
            _lay_over(tree[key], value, f"{where}.{key}")
        else:
            # YAML reads a bare `off` as false.
            tree[key] = "off" if value is False and isinstance(tree[key], str) else value
