"""The settings of a study: its problems, cold start, gate, arms and predictions. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from tilewright.config import Section
from tilewright.errors import ConfigError, suggestion
from tilewright.records.field_faults import first_fault
from tilewright.rl.data.cold_start import ColdStartMix

Figure = Literal["rejected", "coverage", "correct", "fast@1.2"]
"""A share that each step has, which a direction compares."""


class ColdStartSection(Section):
    """The conversations of supervised training, before any reward."""

    conversations: int = Field(default=2000, ge=1)
    """Number of conversations."""
    turns: int = Field(default=3, ge=1)
    """Programs of each."""
    extent: Literal["census", "space"] = "census"
    """Programs that occur: those that are judged first, or all that the store has."""
    seed: int = Field(default=0, ge=0)
    """Seed of the conversations."""
    mix: dict[str, float] = Field(default_factory=dict)
    """Shares of plans in the first turn, and the rates `repair` and `regress`."""

    def shares(self) -> ColdStartMix:
        """Return the mix, or raise `ConfigError`."""
        known = ColdStartMix.__dataclass_fields__
        if unknown := [name for name in self.mix if name not in known]:
            hint = suggestion(unknown[0], known) or f"known: {', '.join(known)}"
            raise ConfigError(f"cold_start.mix: there is no share {unknown[0]!r}; {hint}")
        return ColdStartMix(**self.mix)


class GateSection(Section):
    """The samples of the cold-started model that must pass before any arm runs."""

    trajectories: int = Field(default=256, ge=2)
    """Trajectories that are sampled, evenly over the problems."""
    turns: int = Field(default=2, ge=2)
    """Turns of each."""
    override: bool = False
    """Run the arms although a line fails. The page says so."""


class ArmSection(Section):
    """One setting of the training, with some seeds."""

    seeds: int = Field(default=1, ge=1)
    """Number of seeds. Arms with equal seeds have the same weights and prompts at first."""
    first_seed: int = Field(default=0, ge=0)
    """The smallest seed."""
    changes: dict[str, Any] = Field(default_factory=dict)
    """Settings of `train rl` that differ from `training`, by dotted path."""


class DirectionSection(Section):
    """A statement about the effect of one part of the method, with a prediction made before."""

    statement: str
    """The statement of the paper."""
    place: str = ""
    """Its section or figure."""
    figure: Figure
    """The figure that is compared, over the last steps of both arms."""
    arm: str
    """The arm that is expected to have the larger figure."""
    against: str
    """The other arm."""
    predicted: float = Field(gt=0)
    """Predicted difference, as a share."""
    refuted: str = ""
    """The result that would refute it."""


class ScalingSection(Section):
    """Test-time scaling: many turns of a trained model, each prompt with a part of the history."""

    arm: str
    """The arm whose model of its first seed is sampled."""
    turns: int = Field(default=8, ge=2)
    """Turns of each trajectory."""
    samples: int = Field(default=8, ge=1)
    """Trajectories of each problem. All contexts have the same first turns."""
    w: int = Field(default=2, ge=1)
    """Number of earlier turns that `last_w` and `top_w` show."""
    contexts: tuple[Literal["vanilla", "last_w", "top_w"], ...] = ("vanilla", "last_w", "top_w")
    """Choices of the shown turns: all that fit, the newest, or those with the highest reward."""


class StudyConfig(Section):
    """Every setting of `tilewright train study`."""

    name: str
    """Name of the study, for its page."""
    group: str
    """Address of the training problems: a group of the family nano."""
    held_out: str = ""
    """Address of the problems that only measure the model."""
    verdicts: Literal["census", "synthetic"] = "census"
    """Source of verdicts: the evaluator on `settings.eval.device`, or computed ones."""
    cold_start: ColdStartSection = ColdStartSection()
    gate: GateSection = GateSection()
    training: dict[str, Any] = Field(default_factory=dict)
    """The settings of `tilewright train` that all arms share."""
    arms: dict[str, ArmSection] = Field(min_length=1)
    """The arms by name, in the order in which they run."""
    directions: tuple[DirectionSection, ...] = ()
    """Statements with predictions, in the order of the page."""
    reference: str = ""
    """The arm without learning. Each other arm is compared with the best of as many of its
    programs, and with its pass@16. Empty: there is no such arm."""
    scaling: ScalingSection | None = None
    """Test-time scaling after all arms. `null`: none."""
    last_steps: int = Field(default=3, ge=1)
    """Steps at the end of an arm over which its figures are averaged."""

    @property
    def is_synthetic(self) -> bool:
        """Whether a formula computes the verdicts."""
        return self.verdicts == "synthetic"

    def runs(self) -> Iterator[tuple[str, int]]:
        """Yield each arm and seed, in the order in which they run."""
        for name, arm in self.arms.items():
            for seed in range(arm.first_seed, arm.first_seed + arm.seeds):
                yield name, seed


def one_arm(config: StudyConfig, name: str, seed: int | None) -> StudyConfig:
    """Return a study of one arm and seed alone, by default the first seed that it does not have.

    Raises:
        ConfigError: there is no such arm.
    """
    if name not in config.arms:
        raise ConfigError(f"--arm {name}: the study has no such arm; {', '.join(config.arms)}")
    arm = config.arms[name]
    first = arm.first_seed + arm.seeds if seed is None else seed
    arms = {name: arm.model_copy(update={"seeds": 1, "first_seed": first})}
    changes = {"arms": arms, "directions": (), "reference": "", "scaling": None}
    return config.model_copy(update=changes)


def load_study(name: str) -> StudyConfig:
    """Return the settings in a file, or those of a study that comes with tilewright.

    Raises:
        ConfigError: there is no such file, or a setting is wrong; the message names it.
    """
    path = Path(name)
    bundled = files("tilewright.rl.study").joinpath(path.name)
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    elif str(path) == path.name and path.suffix == ".yaml" and bundled.is_file():
        text = bundled.read_text(encoding="utf-8")
    else:
        raise ConfigError(f"{name}: no such file; nano-rehearsal.yaml comes with tilewright")
    try:
        return _checked(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: no YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise ConfigError(f"{name}: {first_fault(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def _checked(tree: Any) -> StudyConfig:  # noqa: ANN401 - YAML
    found = StudyConfig.model_validate(tree)
    found.cold_start.shares()
    for name in found.arms:
        if not name or set(name) & set("/ .") or name.startswith("_"):
            raise ConfigError(f"arms.{name}: a name has no slash, space or dot; it names a folder")
    named = [
        (f"directions.{place}", side)
        for place, item in enumerate(found.directions)
        for side in (item.arm, item.against)
    ]
    named += [("reference", found.reference)] if found.reference else []
    named += [("scaling.arm", found.scaling.arm)] if found.scaling is not None else []
    for path, name in named:
        if name not in found.arms:
            known = ", ".join(found.arms)
            raise ConfigError(f"{path}: there is no arm {name!r}; arms: {known}")
    return found


def first_difference(one: Mapping[str, Any], two: Mapping[str, Any], at: str = "") -> str:
    """Return the dotted path of the first setting that differs, or an empty text."""
    for key in sorted({*one, *two}, key=str):
        path = f"{at}{key}"
        left, right = one.get(key), two.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if found := first_difference(left, right, f"{path}."):
                return found
        elif left != right:
            return path
    return ""
