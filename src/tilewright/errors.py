"""The exceptions of tilewright: its own failures and mistakes of the user.

The behaviour of a candidate, however bad, is an outcome and never an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TilewrightError(Exception):
    """Base of every exception that tilewright raises on purpose."""

    exit_code = 4
    retryable = False


class ConfigError(TilewrightError, ValueError):
    """A setting, a flag or an input file is wrong; the message names it and the remedy."""

    exit_code = 2


class TooLarge(ConfigError):
    """A submission is larger than the server accepts; send it in parts."""


class PluginError(TilewrightError):
    """A plug-in is unknown, cannot be imported, or two share one name."""

    exit_code = 2


class ProblemError(TilewrightError):
    """The problem cannot be used: its reference crashes, or its file is not a problem."""

    exit_code = 3


class CompilationTimeout(ProblemError):
    """A kernel of the problem's reference does not compile in the time that it has."""


class InfrastructureError(TilewrightError):
    """tilewright itself failed, not the candidate; the same request may be sent again."""

    exit_code = 4
    retryable = True


class PolicyError(TilewrightError):
    """The model endpoint failed, or its answer cannot be used."""

    exit_code = 5
    retryable = True


class ReplyRefused(PolicyError):
    """A model refuses one request, for example because it is too long, and answers others."""


class RecordError(TilewrightError):
    """A record is damaged, or was written by a newer tilewright."""

    exit_code = 6


@contextmanager
def boundary(kind: type[TilewrightError], what: str) -> Iterator[None]:
    """Turn any exception of the block into `kind`, with `what` in its message.

    It is for calls into foreign code, which may raise any exception.
    """
    try:
        yield
    except TilewrightError:
        raise
    except Exception as error:
        raise kind(f"{what}: {type(error).__name__}: {error}") from error


@contextmanager
def writing(what: object) -> Iterator[None]:
    """Turn an `OSError` of the block into the `ConfigError` that `what` cannot be written."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{what}: cannot be written: {error.strerror}") from error
