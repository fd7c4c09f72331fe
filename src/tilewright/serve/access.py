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
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilewright.errors import ConfigError

__all__ = ["LOCAL", "SCOPES", "Client", "Tokens", "is_loopback", "make_token"]

Scope = Literal["submit", "read", "admin"]
SCOPES: tuple[Scope, ...] = ("submit", "read", "admin")
FILE = "tokens.json"


@dataclass(frozen=True)
class Client:
    """Who asks, and what it may."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: Scope) -> bool:
        """Tell whether it may do what a scope stands for."""
        return scope in self.scopes or "admin" in self.scopes


LOCAL = Client("local", frozenset(SCOPES))


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
        ConfigError: a scope is unknown, or the file cannot be read or written.
    """
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigError(f"no scope {scope!r}; there are {', '.join(SCOPES)}")
    token, rows = secrets.token_urlsafe(32), _read(home)
    rows[name] = {"sha256": _hashed(token), "scopes": list(scopes)}
    path = home / FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return token


def _read(home: Path) -> dict[str, dict[str, object]]:
    path = home / FILE
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(rows, dict):
        raise ConfigError(f"{path}: no table of tokens")
    return rows


class Tokens:
    """Clients by token, read once. Lifetime: the server.

    Raises:
        ConfigError: the file cannot be read.
    """

    def __init__(self, home: Path) -> None:
        self._clients: dict[str, Client] = {}
        for name, row in _read(home).items():
            scopes = row.get("scopes")
            names = scopes if isinstance(scopes, list) else []
            self._clients[str(row.get("sha256"))] = Client(name, frozenset(map(str, names)))

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._clients)

    def client_of(self, headers: Mapping[str, str]) -> Client | None:
        """Return who sends these headers; `None`: nobody that we know.

        A token comes as `Bearer TOKEN`, or as the password of `Basic`, so that a client of which
        only the address can be set is given `http://x:TOKEN@host:port`.
        """
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


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
