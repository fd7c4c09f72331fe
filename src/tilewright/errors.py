"""The exceptions of tilewright: its own failures and mistakes of the user.

The behaviour of a candidate, however bad, is an outcome and never an exception.
"""

from __future__ import annotations

import difflib
import errno
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class TilewrightError(Exception):
    """Base of every exception that tilewright raises on purpose."""

    exit_code = 4
    retryable = False


class ConfigError(TilewrightError, ValueError):
    """A setting, a flag or an input file is wrong; the message names it and the remedy."""

    exit_code = 2


class DiskFull(ConfigError):
    """The disk has no room for a file; no setting is wrong, and the same command works later."""

    exit_code = 4
    retryable = True


class DiskFailed(ConfigError):
    """The disk or its server failed; no setting is wrong, and the same command may work later."""

    exit_code = 4
    retryable = True


class TooLarge(ConfigError):
    """A submission is larger than the server accepts; send it in parts."""


class PluginError(TilewrightError):
    """A plug-in is unknown, cannot be imported, or two share one name."""

    exit_code = 2


class ProblemError(TilewrightError):
    """The problem cannot be used: its reference crashes, or its file is not a problem."""

    exit_code = 3


class ProblemOutOfMemory(ProblemError):
    """The reference or its comparison ran out of device memory."""


class BaselineOutOfMemory(ProblemOutOfMemory):
    """A baseline ran out of device memory. It may need more than the reference does."""


class CompilationTimeout(ProblemError):
    """The kernels of the problem's reference do not compile in the time that they have."""


class InfrastructureError(TilewrightError):
    """tilewright itself failed, not the candidate; the same request may be sent again."""

    exit_code = 4
    retryable = True


class NoVerdict(TilewrightError):
    """A candidate is unjudged, and the calling tool has no value for that; the message says why."""

    exit_code = 4


class PolicyError(TilewrightError):
    """The model endpoint failed, or its answer cannot be used."""

    exit_code = 5
    retryable = True


class ReplyRefused(PolicyError):
    """A model refuses one request, for example because it is too long, and answers others."""


class RecordError(TilewrightError):
    """A record is damaged, or was written by a newer tilewright."""

    exit_code = 6


MAX_COMPARED = 200
"""Most characters of a name that is compared with known ones."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the system for a disk that is full, or whose share for this user is."""
FAILED_DISK = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
"""Numbers of the system for a disk, or a server of files, that does not do its work."""
_SYSTEM_REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "a folder, not a file",
    errno.ENOTDIR: "a part of the path is a file",
    errno.EEXIST: "a file of that name is there",
    errno.EACCES: "you may not use it; change its permissions",
}
"""By the number of the system: what a person has to know."""


def reason_of(error: OSError | ValueError | RecursionError) -> str:
    """Return why a file cannot be read or written, in words, without its path.

    A `ValueError` is one of a decoder: the text is not UTF-8, or not JSON.
    """
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        return _SYSTEM_REASONS.get(error.errno or 0, text[:1].lower() + text[1:])
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        return f"not UTF-8 text: byte 0x{byte:02x} on line {line}; save the file as UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON from line {error.lineno}, character {error.colno} on"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def close_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most similar; empty: none is."""
    # The time grows with the product of the lengths.
    near = difflib.get_close_matches(name[:MAX_COMPARED], list(known), n=1, cutoff=cutoff)
    return near[0] if near else ""


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `did you mean NAME?` for the known name that is most similar; empty: none is."""
    near = close_name(name, known, cutoff)
    return f"did you mean {near}?" if near else ""


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
    """Turn an `OSError` of the block into the `ConfigError` that `what` cannot be written.

    Raises:
        DiskFull: the disk has no room.
        DiskFailed: the disk or its server failed.
        ConfigError: the file cannot be written for any other reason.
    """
    try:
        yield
    except OSError as error:
        kind = DiskFull if error.errno in NO_ROOM else ConfigError
        if error.errno in FAILED_DISK:
            kind = DiskFailed
        raise kind(f"{what}: cannot be written: {reason_of(error)}") from error
