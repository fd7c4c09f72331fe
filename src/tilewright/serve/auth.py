"""Authentication: every client on the loopback address, elsewhere clients with a token.

The file holds the hash of each token. If it cannot be used, a function raises `ConfigError`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import itertools
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tilewright.errors import ConfigError, reason_of, writing
from tilewright.records import file_lock

Scope = Literal["submit", "read", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
FILE = "tokens.json"
NAME = re.compile(r"[\w.:@/+\-]{1,100}")


@dataclass(frozen=True)
class AuthenticatedClient:
    """A client and its scopes."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """Tell whether the client has a scope."""
        return scope in self.scopes or "admin" in self.scopes


LOCAL = AuthenticatedClient("local", frozenset(SCOPES))
NOBODY = AuthenticatedClient("nobody", frozenset())
RESERVED = {LOCAL.name, NOBODY.name}
"""Names for clients without a token, which no token may have."""


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def make_token(home: Path, name: str, scopes: tuple[str, ...]) -> str:
    """Add a client to the file of tokens, or give it a new token; return the token."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"client {name!r}: a name has 1 to 100 letters, digits and any of . : @ / + - _"
        )
    if name in RESERVED:
        raise ConfigError(f"client {name!r}: requests without a token use this name")
    token = secrets.token_urlsafe(32)
    with _changed(home) as rows:
        rows[name] = {"sha256": _hashed(token), "scopes": list(scopes)}
    return token


def revoke_token(home: Path, name: str) -> None:
    """Remove a client from the file of tokens; its tasks stay."""
    with _changed(home) as rows:
        if name not in rows:
            known = (
                f"the clients are {', '.join(sorted(rows))}" if rows else "no client has a token"
            )
            raise ConfigError(f"no client {name!r}; {known}")
        del rows[name]


def listed_tokens(home: Path) -> dict[str, list[str]]:
    """Return the scopes of each client."""
    return {name: _scopes_of(row) for name, row in sorted(_read(home).items())}


@contextmanager
def _changed(home: Path) -> Iterator[dict[str, dict[str, object]]]:
    """Yield the rows of the file and write them; two commands do so one after the other."""
    path = home / FILE
    with writing(path):
        home.mkdir(parents=True, exist_ok=True)
        with open(home / f"{FILE}.lock", "a", encoding="ascii") as file:
            file_lock.lock(file)
            rows = _read(home)
            yield rows
            fresh = path.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_text(json.dumps(rows, indent=1), encoding="utf-8")
            fresh.replace(path)


def _read(home: Path) -> dict[str, dict[str, object]]:
    path = home / FILE
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {reason_of(error)}") from error
    if not isinstance(rows, dict):
        raise ConfigError(f"{path}: not a JSON object of clients")
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise ConfigError(f"{path}: the entry {name!r} is not a JSON object; remove it")
    return rows


def _scopes_of(row: dict[str, object]) -> list[str]:
    scopes = row.get("scopes")
    return [str(name) for name in scopes] if isinstance(scopes, list) else []


class Tokens:
    """Clients by token, as the file has them now. Lifetime: the server."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._state = _state_of(home)
        self._clients = _clients_of(home)

    def __bool__(self) -> bool:
        return bool(self._clients)

    def _present(self) -> dict[str, AuthenticatedClient]:
        """Return the clients by hash; read the file again if it has changed."""
        state = _state_of(self._home)
        if state != self._state:
            try:
                self._clients, self._state = _clients_of(self._home), state
            except ConfigError:
                # A damaged file admits no client. The read alone may have failed, without a change
                # of the file, so that the next request reads again.
                self._clients, self._state = {}, None
        return self._clients

    def knows(self, client: AuthenticatedClient) -> bool:
        """Tell whether the token of an admitted client is still valid."""
        return client in self._present().values()

    def client_of(self, headers: Mapping[str, str]) -> AuthenticatedClient | None:
        """Return the client that sent these headers, or `None` if it is unknown.

        A token comes as `Bearer TOKEN`, or as the password of `Basic`. The latter is for a client
        that only takes an address: `http://x:TOKEN@host:port`.
        """
        clients = self._present()
        kind, _, value = headers.get("authorization", "").partition(" ")
        token = value.strip()
        if kind.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode().partition(":")[2]
            except ValueError:
                return None
        elif kind.lower() != "bearer":
            return None
        given = _hashed(token)
        # All hashes are compared, so that the time does not depend on the result.
        same = [hmac.compare_digest(known.encode(), given.encode()) for known in clients]
        return next(itertools.compress(clients.values(), same), None)


def _state_of(home: Path) -> tuple[int, int, int] | None:
    try:
        found = (home / FILE).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _clients_of(home: Path) -> dict[str, AuthenticatedClient]:
    return {
        str(row.get("sha256")): AuthenticatedClient(name, frozenset(_scopes_of(row)))
        for name, row in _read(home).items()
        # A reserved name, written by hand, would give access to the tasks of others.
        if name not in RESERVED
    }
