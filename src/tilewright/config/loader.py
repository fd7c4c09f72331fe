"""Load the settings from files, options and the environment, which only this module reads."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from tilewright.config.renamed import RENAMED_SETTINGS, Renaming
from tilewright.config.schema import Config, Section
from tilewright.errors import ConfigError, close_name, reason_of
from tilewright.records.field_faults import fault_text

HOME_VARIABLE = "TILEWRIGHT_HOME"
PLUGINS_VARIABLE = "TILEWRIGHT_PLUGINS"
Tree = TypeVar("Tree", bound=Section)


@dataclass(frozen=True)
class Layer:
    """Settings of one source."""

    source: str
    """Its name in messages."""
    content: dict[str, Any]
    path: str = ""
    """The one setting that it gives, which `source` names; empty: it may give several."""


@dataclass(frozen=True)
class Leaf:
    """One setting: its dotted path, the record that declares it, and its field name there."""

    path: str
    owner: type[BaseModel]
    field: str

    @property
    def default(self) -> object:
        """The default value."""
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
    recorded: bool = False,
    origin: str = "--set",
    flags: Mapping[str, str] = MappingProxyType({}),
) -> Config:
    """Return the settings after `file` and then each `path=value` of `overrides` are applied.

    Args:
        file: a YAML file.
        overrides: each `path=value`.
        environ: replaces the process environment.
        recorded: `file` is the `run.yaml` of a run; old names in it cause no message.
        origin: the place that gave the overrides, for messages.
        flags: the options of a command that gave overrides, by the texts of these.

    Raises:
        ConfigError: a file or a value is wrong; the message names it and what would be right.
    """
    layers = _layers(file, overrides, environ, origin, flags)
    return _at_home(_load_tree(Config, layers, RENAMED_SETTINGS, file if recorded else None))


def load_around(
    owner: type[Tree],
    name: str,
    file: Path,
    overrides: Sequence[str] = (),
    *,
    renamed: Mapping[str, str],
    recorded: bool = False,
) -> Tree:
    """Return a larger tree, in which the settings of tilewright are the section `name`.

    `renamed` maps old dotted paths of the larger tree to new ones. The other arguments and the
    errors are those of `load`.
    """
    first, *rest = _layers(file, overrides, None)
    layers = [Layer(first.source, {name: first.content}), *rest]
    tree = _load_tree(owner, layers, renamed, file if recorded else None)
    return tree.model_copy(update={name: _at_home(getattr(tree, name))})


def _load_tree(
    owner: type[Tree],
    layers: Iterable[Layer],
    renamed: Mapping[str, str],
    recorded: Path | None,
) -> Tree:
    """Return the defaults after all layers; old names in the file `recorded` cause no message."""
    tree: dict[str, Any] = {}
    renaming = Renaming(renamed)
    found = _validate(owner, tree, Layer("the defaults", {}))
    for layer in layers:
        names = Renaming(renamed) if layer.source == str(recorded) else renaming
        _merge(tree, names.layer(layer.source, layer.content))
        found = _validate(owner, tree, layer)
    renaming.report()
    return found


def _at_home(config: Config) -> Config:
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


def whole_environment() -> dict[str, str]:
    """Return all variables of this process."""
    return dict(os.environ)


def with_defaults(variables: Mapping[str, str]) -> dict[str, str]:
    """Set the variables that the environment lacks, for other packages; return all their values."""
    return {name: os.environ.setdefault(name, value) for name, value in variables.items()}


def _layers(
    file: Path | None,
    overrides: Sequence[str],
    environ: Mapping[str, str] | None,
    origin: str = "--set",
    flags: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Layer]:
    variables = _from_environment(os.environ if environ is None else environ)
    yield Layer("the environment", variables)
    if file is not None:
        yield Layer(str(file), _read(file))
    for override in overrides:
        path = override.partition("=")[0].strip()
        source = flags.get(override, f"{origin} {override}")
        yield Layer(source, _parse_override(override, origin), path)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if environ.get(HOME_VARIABLE):
        tree["home"] = environ[HOME_VARIABLE]
    if PLUGINS_VARIABLE in environ:
        names = map(str.strip, environ[PLUGINS_VARIABLE].split(","))
        tree["plugins"] = list(filter(None, names))
    return tree


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        advice = "" if isinstance(error, UnicodeDecodeError) else "; name a YAML file of settings"
        raise ConfigError(f"{file}: {reason_of(error)}{advice}") from error
    content = _parse(text, str(file), has_lines=True)
    if content is None:
        return {}
    if not isinstance(content, dict):
        example = "write for example `eval: {device: cpu}`"
        kind = type(content).__name__
        raise ConfigError(f"{file}: settings are a mapping, not a {kind}; {example}")
    return content


def _parse_override(text: str, origin: str) -> dict[str, Any]:
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        example = "write path=value, for example eval.timing.max_s=5"
        raise ConfigError(f"{origin} {text}: {example}")
    content = _parse(value, f"{origin} {path}")
    for part in reversed(parts[1:]):
        content = {part: content}
    return {parts[0]: content}


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, which also refuses a mapping with a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            name = getattr(key, "value", None)
            if isinstance(name, str) and name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name!r} is repeated", key.start_mark
                )
            seen.add(name if isinstance(name, str) else None)
        return super().construct_mapping(node, deep=deep)


def _parse(text: str, source: str, *, has_lines: bool = False) -> object:
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}:{mark.line + 1}" if has_lines and mark is not None else source
        raise ConfigError(f"{place}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        # A character that YAML does not admit.
        raise ConfigError(f"{source}: not YAML: {' '.join(str(error).split())}") from error


def _merge(tree: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        below = tree.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            _merge(below, value)
        else:
            tree[key] = value


def _validate(owner: type[Tree], tree: dict[str, Any], layer: Layer) -> Tree:
    try:
        return owner.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{layer.source}: {_explain(owner, error, layer.path)}") from error


def _explain(owner: type[BaseModel], error: ValidationError, given: str) -> str:
    """Return the first fault; `given` is the path that the message names already."""
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"])
    named = given == path or given.startswith(f"{path}.")
    where = "" if named else f"{path or 'the settings'}: "
    if first["type"] == "extra_forbidden":
        return f"{where}no such setting; {_suggest(owner, given if named else path)}"
    below = next((leaf.path for leaf in leaves(owner) if leaf.path.startswith(f"{path}.")), "")
    if below and path:
        return f"{where}a section, not a setting; set one in it, for example {below}"
    return f"{where}{fault_text(first)}"


def _suggest(owner: type[BaseModel], path: str) -> str:
    settings = [leaf.path for leaf in leaves(owner)]
    sections = {leaf.rpartition(".")[0] for leaf in settings} - {""}
    known = [*settings, *sorted(sections)]
    near = close_name(path, known)
    if not near:
        names = {name.rpartition(".")[2]: name for name in known}
        near = names.get(close_name(path.rpartition(".")[2], names), "")
    return f"did you mean {near}?" if near else "docs/reference/config.md lists all settings"
