"""Who may ask: on the loopback address everybody, anywhere else whoever has a token.

A token is shown once, when it is made; what is kept is its hash.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilewright.errors import ConfigError
from tilewright.records import file_lock

__all__ = [
    "LOCAL",
    "NOBODY",
    "SCOPES",
    "Client",
    "Tokens",
    "is_loopback",
    "listed_tokens",
    "make_token",
    "revoke_token",
]

Scope = Literal["submit", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("submit", "read", "admin")
FILE = "tokens.json"
NAME = re.compile(r"[\w.:@/+\-]{1,100}")


@dataclass(frozen=True)
class Client:
    """Who asks, and what it may."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """Tell whether it may do what a scope stands for."""
        return scope in self.scopes or "admin" in self.scopes


LOCAL = Client("local", frozenset(SCOPES))
NOBODY = Client("nobody", frozenset())
RESERVED = {LOCAL.name, NOBODY.name}
"""Whose work and requests are those of nobody with a token."""


def is_loopback(address: str) -> bool:
    """Tell whether an address is of this machine alone."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def make_token(home: Path, name: str, scopes: tuple[str, ...]) -> str:
    """Add a client to the file of tokens, or give it a new token; return the token.

    Raises:
        ConfigError: nobody may be called so, a scope is unknown, or the file cannot be read or
            written.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"client {name!r}: a name has 1 to 100 letters, digits and any of . : @ / + - _"
        )
    if name in RESERVED:
        raise ConfigError(
            f"client {name!r}: work without a token is filed under that name; choose another"
        )
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigError(f"no scope {scope!r}; there are {', '.join(SCOPES)}")
    token = secrets.token_urlsafe(32)
    with _alone(home):
        row: dict[str, object] = {"sha256": _hashed(token), "scopes": list(scopes)}
        _write(home, {**_read(home), name: row})
    return token


def revoke_token(home: Path, name: str) -> None:
    """Take a client out of the file of tokens; its work stays.

    Raises:
        ConfigError: there is no such client, or the file cannot be read or written.
    """
    with _alone(home):
        rows = _read(home)
        if name not in rows:
            raise ConfigError(f"no client {name!r}; there are {', '.join(sorted(rows)) or 'none'}")
        del rows[name]
        _write(home, rows)


def listed_tokens(home: Path) -> dict[str, list[str]]:
    """Return the scopes of each client.

    Raises:
        ConfigError: the file cannot be read.
    """
    return {name: _scopes_of(row) for name, row in sorted(_read(home).items())}


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Let one command at a time change the file: what another wrote meanwhile would be lost."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = open(home / f"{FILE}.lock", "a", encoding="ascii")  # noqa: SIM115 - held below
    except OSError as error:
        raise ConfigError(f"{home / FILE}: cannot be written: {error.strerror}") from error
    with file:
        file_lock.lock(file)
        yield


def _write(home: Path, rows: dict[str, dict[str, object]]) -> None:
    path = home / FILE
    try:
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def _read(home: Path) -> dict[str, dict[str, object]]:
    path = home / FILE
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(rows, dict):
        raise ConfigError(f"{path}: no table of tokens")
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise ConfigError(f"{path}: what stands under {name!r} is no object; take it out")
    return rows


def _scopes_of(row: dict[str, object]) -> list[str]:
    scopes = row.get("scopes")
    return [str(name) for name in scopes] if isinstance(scopes, list) else []


class Tokens:
    """Clients by token, as the file has them at the moment. Lifetime: the server.

    Raises:
        ConfigError: the file cannot be read.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._state = _state_of(home)
        self._clients = _clients_of(home)

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._clients)

    def _look_again(self) -> None:
        """Read the file if it is another one than last time; one that is damaged lets nobody in."""
        state = _state_of(self._home)
        if state == self._state:
            return
        try:
            self._clients = _clients_of(self._home)
        except ConfigError:
            self._clients = {}
        self._state = state

    def knows(self, client: Client) -> bool:
        """Tell whether a client that was let in would still be."""
        self._look_again()
        return client in self._clients.values()

    def client_of(self, headers: Mapping[str, str]) -> Client | None:
        """Return who sends these headers; `None`: nobody that we know.

        A token comes as `Bearer TOKEN`, or as the password of `Basic`, so that a client of which
        only the address can be set is given `http://x:TOKEN@host:port`.
        """
        self._look_again()
        kind, _, value = headers.get("authorization", "").partition(" ")
        token = value.strip()
        if kind.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return None
        elif kind.lower() != "bearer":
            return None
        given = _hashed(token)
        # Each is compared, in the same time whatever comes of it.
        found = [client for known, client in self._clients.items() if _same(known, given)]
        return found[0] if found else None


def _state_of(home: Path) -> tuple[int, int, int] | None:
    try:
        found = (home / FILE).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _clients_of(home: Path) -> dict[str, Client]:
    return {
        str(row.get("sha256")): Client(name, frozenset(_scopes_of(row)))
        for name, row in _read(home).items()
        # One of these, written by hand or long ago, would be let in to the work of others.
        if name not in RESERVED
    }


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
