"""Where evaluations happen, by the setting `executor`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from tilewright.config import LOCAL, Config
from tilewright.evaluator.devices import find_device
from tilewright.executors.local import LocalExecutor
from tilewright.executors.remote import RemoteExecutor
from tilewright.records import EvalReport, EvalRequest

__all__ = ["Executor", "device_model", "open_executor"]


class Executor(Protocol):
    """Judges requests, several at once where it can. Lifetime: until `close`."""

    def evaluate(
        self,
        request: EvalRequest,
        progress: Callable[[str, dict[str, Any]], None],
        *,
        checks: tuple[str, ...] | None = None,
    ) -> EvalReport:
        """Judge one candidate.

        Raises:
            ProblemError: the problem cannot be used.
            InfrastructureError: our side failed.
        """

    def close(self) -> None:
        """Let evaluations under way finish."""

    def kill(self) -> None:
        """End them; who waits gets an error."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""


def open_executor(settings: Config, workers: int = 1) -> Executor:
    """Return the executor of these settings: this machine's own, or a server's.

    Raises:
        ConfigError: the address is none.
    """
    if settings.executor == LOCAL:
        return LocalExecutor(settings.home, workers, settings.eval.devices)
    return RemoteExecutor(settings.executor)


def device_model(settings: Config, name: str) -> str:
    """Return the model of a device, or that of the server's devices.

    Raises:
        InfrastructureError: it is not here, or the server is not reached.
    """
    if settings.executor == LOCAL:
        return find_device(name).model
    return RemoteExecutor(settings.executor).device_model()
