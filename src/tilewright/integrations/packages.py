"""The packages of integrations: which versions are tested, and one clear error for all others."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass

from tilewright.errors import ConfigError


@dataclass(frozen=True)
class Package:
    """A package of another project, with the versions from `first` up to but without `below`."""

    name: str
    extra: str
    first: str
    below: str

    @property
    def requirement(self) -> str:
        """The requirement of the extra in `pyproject.toml`."""
        return f"{self.name}>={self.first},<{self.below}"


VERIFIERS = Package("verifiers", "verifiers", "0.4.0", "0.5")
OLD_VERIFIERS = Package("verifiers", "verifiers-0-2", "0.2.1", "0.3")
OPENENV = Package("openenv", "openenv", "0.10.0", "0.11")
INSPECT = Package("inspect-ai", "inspect", "0.3.285", "0.4")
TENSORBOARD = Package("tensorboard", "tensorboard", "2.18", "3")
TRACKIO = Package("trackio", "trackio", "0.43.0", "0.44")
WANDB = Package("wandb", "wandb", "0.31.0", "0.32")
MLFLOW = Package("mlflow", "mlflow", "3.17.2", "3.19")
LOGGERS = {item.name: item for item in (TENSORBOARD, TRACKIO, WANDB, MLFLOW)}
PACKAGES = (VERIFIERS, OLD_VERIFIERS, OPENENV, INSPECT, *LOGGERS.values())


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: `0.3.285` gives (0, 3, 285); suffixes do not count."""
    return tuple(int(part) for part in re.match(r"\d*(?:\.\d+)*", version)[0].split(".") if part)  # type: ignore[index]


def in_range(version: str, package: Package) -> bool:
    """Tell whether a version is one of those that the extra allows."""
    return release(package.first) <= release(version) < release(package.below)


def installed(name: str) -> str | None:
    """Return the installed version of a package; `None`: it is not here."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def require(*alternatives: Package) -> Package:
    """Return the package whose range holds the installed version.

    Raises:
        ConfigError: it is missing, too old or too new; the message has the command that helps.
    """
    first = alternatives[0]
    version = installed(first.name)
    command = f"pip install 'tilewright[{first.extra}]'"
    if version is None:
        raise ConfigError(f"the integration needs the package {first.name}: {command}")
    for package in alternatives:
        if in_range(version, package):
            return package
    old = release(version) < release(first.first)
    tested = " or ".join(f">={item.first},<{item.below}" for item in alternatives)
    raise ConfigError(
        f"{first.name} {version} is too {'old' if old else 'new'}; the integration is tested with "
        f"{tested}: {command}"
    )
