"""One frozen tree of settings, and the only reader of the process environment.

Sources, lowest first: the defaults below, one YAML file, `--set path=value`. The environment
gives two defaults: `TILEWRIGHT_HOME` for `home`, `TILEWRIGHT_PLUGINS` for `plugins`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.errors import ConfigError
from tilewright.records import Limits, Protocol, Rules, TimingPlan

__all__ = [
    "HOME_VARIABLE",
    "LOCAL",
    "PLUGINS_VARIABLE",
    "RAY",
    "Config",
    "EvalSection",
    "Leaf",
    "LoopSection",
    "ModelSection",
    "RewardSection",
    "Section",
    "ServeSection",
    "at_home",
    "dump",
    "environment",
    "leaves",
    "load",
    "load_around",
    "load_tree",
]

HOME_VARIABLE = "TILEWRIGHT_HOME"
LOCAL = "local"
RAY = "ray"
PLUGINS_VARIABLE = "TILEWRIGHT_PLUGINS"


class Section(BaseModel):
    """Base of every section: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Tree = TypeVar("Tree", bound=Section)


class EvalSection(Section):
    """How one candidate is judged."""

    protocol: Protocol = "strict"
    """`strict` (ours) or `official` (the published rules of the problem's benchmark)."""
    device: str = "cpu"
    """Where candidates run."""
    devices: tuple[str, ...] = ()
    """Devices of one model that share the work of a run; none: `eval.device` alone."""
    baselines: tuple[str, ...] = Field(default=("eager",), min_length=1)
    """What a speed-up is against: `eager`, `compile`, `max-autotune`, or a candidate's path."""
    require_layers: tuple[str, ...] = ()
    """Isolation layers without which no candidate is run."""
    reuse: bool = False
    """Answer identical work from the store instead of judging it again."""
    rules: Rules = Rules()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()


class ModelSection(Section):
    """How a model behind a server is asked, or one of this machine sampled."""

    base_url: str | None = None
    """Where a server speaks OpenAI's chat protocol; `null`: the default of the `openai` package."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds the key. The key itself is written nowhere."""
    temperature: float | None = Field(default=1.0, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    """Of the sampler, where a server takes one; each reply gets one of its own made of it."""
    max_tokens: int = Field(default=16384, ge=1)
    """Of one reply, what is thought aloud included."""
    timeout_s: float = Field(default=600.0, gt=0)
    retries: int = Field(default=5, ge=0)
    pause_s: float = Field(default=1.0, ge=0)
    """Before the first repetition of a request; doubled each time."""
    concurrency: int = Field(default=16, ge=1)
    """Requests that are under way at once."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    usd_per_million_in: float = Field(default=0.0, ge=0)
    """Price of a million tokens of prompts."""
    usd_per_million_out: float = Field(default=0.0, ge=0)
    device: str = "cpu"
    """Where a model of this machine (`local:PATH`) computes: `cpu`, `cuda` or `cuda:N`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Added to each request as it is, for what one server alone knows."""


class LoopSection(Section):
    """How a model is asked again and again."""

    strategy: str = "sequential"
    """Decides what to ask next."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What that strategy alone knows, as `context: top_w` and `w: 4`."""
    turns: int = Field(default=14, ge=1)
    """Answers in each trajectory."""
    samples: int = Field(default=1, ge=1)
    """Trajectories for each problem."""
    in_flight: int = Field(default=4, ge=1)
    """Turns that are under way at once."""
    reward: Literal["speed", "tilewright", "paper", "released_code"] = "speed"
    """What the strategy maximises: `speed` has no cap, which suits search; the others do."""
    feedback: Literal["tilewright", "paper", "released_code"] = "tilewright"
    """What a model is told of a verdict."""
    feedback_tokens: int = Field(default=1200, ge=100)
    """How long that may be."""
    language: str | None = None
    """In which candidates are to be written; `null`: as the model likes."""
    turn_s: float = Field(default=120.0, gt=0)
    """What one evaluation may take; it lowers `eval.limits.total_s`."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Tokens that a run may use, of prompts and replies together."""
    max_turns: int | None = Field(default=None, ge=0)
    """Turns that a run may make, over all trajectories."""
    max_device_s: float | None = Field(default=None, ge=0)
    """Seconds of evaluations."""
    max_wall_s: float | None = Field(default=None, gt=0)
    """Seconds of a sitting; what is under way then is asked again when the run is resumed."""
    max_usd: float | None = Field(default=None, ge=0)


class RewardSection(Section):
    """How replies are scored for a trainer that is not ours."""

    name: Literal["tilewright", "paper", "released_code", "speed"] = "tilewright"
    """Which reward; all are views of one verdict."""
    checks: bool = True
    """`false`: what was rejected for a finding is paid like what is correct. For ablations; the
    candidate is judged all the same, behind the same wall."""
    on_unjudged: Literal["raise", "zero", "none"] = "raise"
    """What a reply earns that could not be judged, after all attempts: an error, 0, or `None`,
    which TRL reads as "this reward does not apply" and verl does not know."""
    retries: int = Field(default=2, ge=0)
    """How often a reply is judged once more that could not be judged."""
    pause_s: float = Field(default=5.0, ge=0)
    """Before the first repetition; doubled each time."""
    concurrency: int = Field(default=4, ge=1)
    """Replies that are judged at once."""


class ServeSection(Section):
    """What `tilewright serve` allows its clients, and how long it remembers."""

    protocol: Literal["strict", "kernelgym"] = "strict"
    """By whose rules KernelGYM's door answers: ours, or KernelGYM's over an `official` report."""
    log: Path | None = None
    """Where requests and tasks are logged, a JSON object a line; `null`: to stderr."""
    most_waiting: int = Field(default=10_000, ge=1)
    """Tasks that may wait; above that a submission is answered with 429."""
    most_waiting_each: int = Field(default=5_000, ge=1)
    """Tasks of one client with a token that may wait."""
    requests_per_s: float = Field(default=200.0, gt=0)
    """Of each client with a token, in the long run; also of each address without a valid one."""
    burst: int = Field(default=2_000, ge=1)
    """Requests that a client may make at once after a pause."""
    body_bytes: int = Field(default=4 << 20, ge=1024)
    """How large a request's body may be."""
    body_s: float = Field(default=30.0, gt=0)
    """How long it may take to arrive."""
    headers_s: float = Field(default=10.0, gt=0)
    """How long a connection may be open without a whole request line and its headers."""
    connections: int = Field(default=1_000, ge=8)
    """Open at once; what comes above is answered with 503."""
    drain_s: float = Field(default=600.0, gt=0)
    """How long a server that is to end waits for what it is judging."""
    keep_days: float | None = Field(default=30.0, gt=0)
    """Ended tasks that are older are forgotten, with their reports; `null`: none."""
    keep_tasks: int | None = Field(default=200_000, ge=1)
    """How many ended tasks are kept, the latest; `null`: all."""


class Config(Section):
    """Every setting of tilewright."""

    home: Path = Path("~/.cache/tilewright")
    """Where builds, calibrations, leases and stored results are kept."""
    runs: Path = Path("runs")
    """Where run folders are written."""
    plugins: tuple[str, ...] | None = None
    """Packages whose plug-ins may be loaded beside our own; `null`: all that are installed."""
    executor: str = LOCAL
    """Where candidates are judged: `local`, the address of a `tilewright serve` as
    `http://x:TOKEN@host:port`, or a Ray cluster: `ray` (one started here), `ray:auto`,
    `ray:HOST:PORT`, each with `?accelerator=NAME` where it has several kinds."""
    eval: EvalSection = EvalSection()
    model: ModelSection = ModelSection()
    loop: LoopSection = LoopSection()
    reward: RewardSection = RewardSection()
    serve: ServeSection = ServeSection()


@dataclass(frozen=True)
class Leaf:
    """One setting: its dotted path, the record that declares it, and its field name there."""

    path: str
    owner: type[BaseModel]
    field: str

    @property
    def default(self) -> object:
        """The value without a file and without flags."""
        return self.owner.model_fields[self.field].get_default(call_default_factory=True)

    @property
    def annotation(self) -> str:
        """The type, as it is written in Python."""
        annotation = self.owner.model_fields[self.field].annotation
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        return text.replace("typing.", "")


def leaves(owner: type[BaseModel] = Config, prefix: str = "") -> Iterator[Leaf]:
    """Yield every setting of the tree, in the order of declaration."""
    for name, field in owner.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from leaves(annotation, f"{prefix}{name}.")
        else:
            yield Leaf(path=f"{prefix}{name}", owner=owner, field=name)


def load(
    file: Path | None = None,
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Return the settings after `file` and then each `path=value` of `overrides` are applied.

    `environ` stands in for the process environment.

    Raises:
        ConfigError: a file or a value is wrong; the message names it and what would be right.
    """
    return at_home(load_tree(Config, _layers(file, overrides, _given(environ))))


def load_tree(owner: type[Tree], layers: Iterable[tuple[str, dict[str, Any]]]) -> Tree:
    """Return a tree of settings after layers are laid over its defaults, each with its source.

    Raises:
        ConfigError: a value is wrong; the message names it and what would be right.
    """
    tree: dict[str, Any] = {}
    found = _validate(owner, tree, "the defaults")
    for source, layer in layers:
        _merge(tree, layer)
        found = _validate(owner, tree, source)
    return found


def load_around(
    owner: type[Tree],
    name: str,
    file: Path,
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> Tree:
    """Return a larger tree, in which the settings of tilewright are the section `name`.

    Raises:
        ConfigError: a file or a value is wrong; the message names it and what would be right.
    """
    first, *rest = _layers(file, overrides, _given(environ))
    tree = load_tree(owner, [(first[0], {name: first[1]}), *rest])
    return tree.model_copy(update={name: at_home(getattr(tree, name))})


def at_home(config: Config) -> Config:
    """Return settings whose `home` is a path from the root.

    Raises:
        ConfigError: it is the home of a user whom nobody knows.
    """
    try:
        home = config.home.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"home: {config.home}: there is no such user: {error}") from error
    return config.model_copy(update={"home": home})


def dump(config: Section) -> str:
    """Return YAML that `load` turns back into an equal tree."""
    text: str = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
    return text


def environment(names: Iterable[str]) -> dict[str, str]:
    """Return those of the named variables of this process that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _given(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _layers(
    file: Path | None, overrides: Sequence[str], environ: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "the environment", _from_environment(environ)
    if file is not None:
        yield str(file), _read(file)
    for override in overrides:
        yield f"--set {override}", _parse_override(override)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if environ.get(HOME_VARIABLE):
        tree["home"] = environ[HOME_VARIABLE]
    if PLUGINS_VARIABLE in environ:
        names = environ[PLUGINS_VARIABLE].split(",")
        tree["plugins"] = [name.strip() for name in names if name.strip()]
    return tree


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the settings file {file}: {error}") from error
    content = _parse(text, str(file))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: settings are a mapping, not a {type(content).__name__}")
    return content


def _parse_override(text: str) -> dict[str, Any]:
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"--set {text}: write path=value, for example --set eval.timing.max_s=5")
    content = _parse(value, f"--set {path}")
    for part in reversed(parts[1:]):
        content = {part: content}
    return {parts[0]: content}


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice in one mapping is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            name = getattr(key, "value", None)
            if isinstance(name, str) and name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name!r} stands twice", key.start_mark
                )
            seen.add(name if isinstance(name, str) else None)
        return super().construct_mapping(node, deep=deep)


def _parse(text: str, source: str) -> object:
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not YAML: {' '.join(str(error).split())}") from error


def _merge(tree: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        below = tree.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            _merge(below, value)
        else:
            tree[key] = value


def _validate(owner: type[Tree], tree: dict[str, Any], source: str) -> Tree:
    try:
        return owner.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(owner, error)}") from error


def _explain(owner: type[BaseModel], error: ValidationError) -> str:
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{path}: no such setting{_suggest(owner, path)}"
    return f"{path or 'the settings'}: {first['msg']} (got {first['input']!r})"


def _suggest(owner: type[BaseModel], path: str) -> str:
    settings = [leaf.path for leaf in leaves(owner)]
    sections = {leaf.rpartition(".")[0] for leaf in settings} - {""}
    known = [*settings, *sorted(sections)]
    near = difflib.get_close_matches(path, known, n=1, cutoff=0.6)
    if not near:
        names = {name.rpartition(".")[2]: name for name in known}
        last = path.rpartition(".")[2]
        near = [names[name] for name in difflib.get_close_matches(last, names, n=1, cutoff=0.6)]
    if near:
        return f"; did you mean {near[0]}?"
    return "; docs/reference/config.md lists all settings"
