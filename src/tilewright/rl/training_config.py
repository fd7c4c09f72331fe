"""The settings of training around the estimator's preset: one tree in one YAML file. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from tilewright.config import RENAMED_TRAINING, Config, Section, load_around
from tilewright.config.schema import Loggers
from tilewright.errors import ConfigError, PluginError
from tilewright.records.field_faults import with_path
from tilewright.rl.presets import Preset, preset
from tilewright.rl.rewards.turn_reward import find_reward


class FreshSection(Section):
    """A small model of Qwen3's architecture, created when `model.path` is empty."""

    hidden: int = Field(default=128, ge=8)
    """Width of the hidden states."""
    layers: int = Field(default=2, ge=1)
    """Number of transformer blocks."""
    heads: int = Field(default=4, ge=1)
    """Attention heads of each block."""
    positions: int = Field(default=1024, ge=16)
    """The longest context."""
    vocabulary: int = Field(default=1024, ge=300)
    """Most tokens of the vocabulary, which is built from the conversations."""
    tokens: Literal["lines", "bytes"] = "lines"
    """`lines` merges up to whole lines, which suits repetitive programs; `bytes` up to words."""


class LoraSection(Section):
    """Training of LoRA adapters instead of all weights."""

    rank: int = Field(default=0, ge=0)
    """0: all weights are trained."""
    alpha: float = Field(default=32.0, gt=0)
    """Scale of the adapters: their output is multiplied by alpha / rank."""
    targets: str = "all-linear"
    """Modules that get an adapter: `all-linear`, or names with commas."""


class StartSection(Section):
    """The model that is trained."""

    path: str = ""
    """Folder of a model. `train sft` writes its model to RUN/model."""
    from_scratch: FreshSection = FreshSection()
    lora: LoraSection = LoraSection()


class DataSection(Section):
    """Data of the training."""

    conversations: tuple[str, ...] = ()
    """Files of JSON lines or parquet with `messages`, for supervised training."""
    max_tokens: int = Field(default=18432, ge=1)
    """Most tokens of a conversation. Longer ones are truncated."""
    problems: str = "bundled"
    """Address of the training problems."""
    contexts: str = ""
    """File of stored contexts for learning from rewards. Each prompt then shows the programs of
    one context, and contexts are drawn instead of problems."""
    held_out: str = ""
    """Address of the problems that only measure the model. None may be a training problem."""
    trees: str = ""
    """File of action trees for learning to choose (`tilewright train choices`)."""
    held_out_trees: str = ""
    """File of action trees that only measure the model. None may be about a training problem."""


class MachineSection(Section):
    """Hardware and batching. No setting here changes what is estimated."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Device of the model that is trained. Candidates run on `eval.device`."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Precision of updates. Weights and optimizer moments are always fp32."""
    sampler_precision: Literal["fp32", "bf16"] | None = None
    """Precision of sampling. `null`: that of `precision`. Another one plants a mismatch, which
    mismatch rejection should find."""
    sampler: Literal["generate", "paged", "vllm", "sglang"] | None = None
    """Sampler. Engine `trl`: `generate` samples batch by batch and repeats bit by bit. `paged` is
    faster: a finished row makes room at once. A repetition with `paged` may differ. Engine `verl`:
    the server `vllm` or `sglang`. `null`: `generate`, or `vllm` with `verl`."""
    threads: int = Field(default=0, ge=0)
    """Threads of torch on a CPU. 0: torch's default. A resumed run is bit-identical if equal, with
    the sampler `generate`."""
    sampling_batch_size: int = Field(default=64, ge=1)
    """Prompts in one batch of the sampler. For `paged`: most rows at the same time."""
    train_batch_size: int = Field(default=16, ge=1)
    """Average number of rows in one forward and backward pass."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass. It needs less memory and more time."""
    gpus: int = Field(default=1, ge=1)
    """GPUs of each node. The engine `trl` uses one."""
    nodes: int = Field(default=1, ge=1)
    """Nodes of the Ray cluster. The engine `trl` uses one."""
    tensor_parallel: int = Field(default=1, ge=1)
    """Engine `verl`: GPUs that one copy of the server is spread over."""
    server_memory: float = Field(default=0.5, gt=0, lt=1)
    """Engine `verl`: share of each GPU's memory that the server may use while it samples."""
    shard: Literal["fsdp2"] = "fsdp2"
    """Engine `verl`: how weights, gradients and moments are spread over the GPUs."""
    offload: bool = False
    """Engine `verl`: keep weights and moments in host memory while they are not used."""
    anyway: bool = False
    """Engine `verl`: train a model that is too large by `--plan`."""
    verl: dict[str, Any] = Field(default_factory=dict)
    """Engine `verl`: more settings of verl by their path, such as
    `actor_rollout_ref.rollout.max_num_seqs: 512`. A path that verl's own tree lacks begins with
    `+`. None may be one that the run sets itself."""


class CheckpointSection(Section):
    """Checkpoints, from which a killed run resumes."""

    every: int = Field(default=10, ge=1)
    """Steps between two checkpoints."""
    keep: int = Field(default=2, ge=1)
    """Newest checkpoints that are kept, besides the one with the best held-out reward."""


class ScoreSection(Section):
    """When held-out problems are scored. The preset sets the number of samples and turns."""

    every: int = Field(default=0, ge=0)
    """Steps between two scores. 0: only at the end."""


class HealthSection(Section):
    """Metrics of the training, and when it warns or stops."""

    warn_unjudged: float = Field(default=0.01, ge=0, le=1)
    """Share of unjudged turns in a batch that prints a warning. They are not missing at random."""
    stop_unjudged: float = Field(default=0.05, ge=0, le=1)
    """Share of unjudged turns in a batch that stops the run."""
    stop_silent: int = Field(default=10, ge=0)
    """Batches in a row without any advantage that stop the run. 0: none stop it."""
    reference: bool = True
    """Measure the distance from the initial model. It costs the memory of a copy."""
    log: Loggers = ()
    """Loggers that show the curves of the training, with commas between them. They upload nothing,
    unless their own settings say so."""


class TrainConfig(Section):
    """Every setting of `tilewright train`."""

    preset: str = "tilewright"
    """Preset of the estimator: `paper`, `released_code` or `tilewright`."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Settings that replace those of the preset, by section."""
    seed: int = Field(default=0, ge=0)
    """Seed of the problem order, sampling, PRS and the weights of a new model."""
    engine: str = "trl"
    """Trainer of `train rl`: `trl`, `verl`, or a plug-in of the kind `engines`."""
    world: str = "evaluator"
    """Source of verdicts: the `evaluator`, the `book` of stored ones, or the name of a plug-in."""
    verdicts: str = ""
    """Store of the world `book`: a file of verdicts, or `synthetic`."""
    require_custom_kernel: bool = True
    """Reject candidates that launch no kernel of their own, whatever `eval.rules` says."""
    model: StartSection = StartSection()
    data: DataSection = DataSection()
    machine: MachineSection = MachineSection()
    checkpoints: CheckpointSection = CheckpointSection()
    scores: ScoreSection = ScoreSection()
    health: HealthSection = HealthSection()
    settings: Config = Config()
    """The settings of every other verb."""

    def estimator(self) -> Preset:
        """Return the preset with its overrides."""
        tree = preset(self.preset).model_dump()
        _lay_over(tree, self.overrides, "overrides")
        if self.overrides:
            tree["name"] = f"{self.preset}, changed"
        try:
            found = Preset.model_validate(tree)
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(map(str, ("overrides", *first["loc"])))
            raise ConfigError(with_path(path, first)) from error
        if found.exemplars.selection != "none" and self.data.contexts:
            raise ConfigError(
                "overrides.exemplars.selection: prompts show exemplars or the stored contexts of "
                "data.contexts, not both"
            )
        try:
            find_reward(found.reward.function, self.settings.plugins)
        except PluginError as error:
            raise ConfigError(f"overrides.reward.function: {error}") from error
        return found


def load_training(
    file: Path, overrides: Sequence[str] = (), *, recorded: bool = False
) -> TrainConfig:
    """Return the settings of a training, after `file` and each `path=value` of `overrides`.

    `recorded` says that `file` is the `run.yaml` of a run, whose old names are renamed silently.

    Raises:
        ConfigError: a file or a value is wrong; the message names it.
    """
    found = load_around(
        TrainConfig, "settings", file, overrides, renamed=RENAMED_TRAINING, recorded=recorded
    )
    sampling = found.estimator().sampling
    if sampling.top_k != 0 or sampling.top_p != 1.0:
        raise ConfigError(
            f"sampling.top_k is {sampling.top_k} and top_p {sampling.top_p:g}: a cut distribution "
            "is not the one whose log-probabilities are trained; give 0 and 1"
        )
    if sampling.reply_tokens >= sampling.context_tokens:
        raise ConfigError(
            f"sampling.reply_tokens {sampling.reply_tokens} leaves no tokens for a prompt in "
            f"context_tokens {sampling.context_tokens}"
        )
    return found


def with_more_steps(before: TrainConfig, now: TrainConfig, folder: Path) -> TrainConfig:
    """Return the settings of a run, with the steps of `now` if these alone differ in the preset.

    Raises:
        ConfigError: the number of steps is smaller than before.
    """
    then, steps = (each.estimator().optimizer.steps for each in (before, now))
    if steps == then:
        return before
    if steps < then:
        raise ConfigError(
            f"{folder} has {then} steps, and overrides.optimizer.steps is {steps}: "
            "a resumed run accepts only a larger number"
        )
    if (schedule := now.estimator().optimizer.schedule) != "constant":
        raise ConfigError(
            f"overrides.optimizer.steps: the learning rate of {folder} follows the schedule "
            f"{schedule}, which ends at step {then}; start a new run"
        )
    optimizer = {**before.overrides.get("optimizer", {}), "steps": steps}
    return before.model_copy(update={"overrides": {**before.overrides, "optimizer": optimizer}})


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
