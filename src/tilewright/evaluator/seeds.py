"""Seeds: one secret root of 128 bits, and everything else derived from it by name."""

from __future__ import annotations

import hashlib
import random
import secrets


def random_root() -> str:
    """Return a fresh secret root seed, 32 hexadecimal digits."""
    return secrets.token_hex(16)


def derive(root: str, *names: object) -> int:
    """Return the 63-bit seed of `names` under `root`; knowing it tells nothing of another."""
    text = "|".join([root, *(str(name) for name in names)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(root: str, *names: object) -> random.Random:
    """Return a generator of our own choices (sizes, slots, which calls are checked)."""
    return random.Random(derive(root, *names))
