"""Prime Intellect's verifiers: a task set for 0.4, and `load_environment` for 0.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.integrations.packages import OLD_VERIFIERS, VERIFIERS, require

if TYPE_CHECKING:
    from tilewright.integrations.verifiers_environment import load_environment
    from tilewright.integrations.verifiers_taskset import (
        Kernels,
        KernelsConfig,
        KernelsEnv,
        KernelsHarness,
    )

__all__ = ["Kernels", "KernelsConfig", "KernelsEnv", "KernelsHarness", "load_environment"]
NAMES_OF_0_2 = ("load_environment",)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - classes and a function
    """Return a name of the installed version.

    Raises:
        ConfigError: the package is missing, or its version is not one of those tested.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    old = require(VERIFIERS, OLD_VERIFIERS) is OLD_VERIFIERS
    if old != (name in NAMES_OF_0_2):
        has = ", ".join(NAMES_OF_0_2 if old else [item for item in __all__ if item != name])
        version = "0.2" if old else "0.4"
        raise AttributeError(f"verifiers {version} has no use for {name!r}; with it there is {has}")
    if old:
        from tilewright.integrations import verifiers_environment as module
    else:
        from tilewright.integrations import verifiers_taskset as module  # type: ignore[no-redef]
    return getattr(module, name)
