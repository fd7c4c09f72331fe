"""Random values of strategies: each follows from a seed, a request and a purpose.

No generator outlives a decision, so a resumed search draws what it drew before. Nothing depends on
the order of a set or on `hash`.
"""

from __future__ import annotations

import hashlib
import json
import random


def chooser(seed: int, *purpose: str | int) -> random.Random:
    """Return a new generator for one decision, for example `chooser(seed, ask_id, "parent")`."""
    text = json.dumps([seed, *purpose])
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))
