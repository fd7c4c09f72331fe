"""Whether KernelBench and KernelGYM would call a failed candidate compiled.

Both import the file first, and then construct its class. A `RuntimeError` of the constructor counts
as compiled, and any other exception there does not. The guides name the versions.
"""

from __future__ import annotations

import builtins

from tilewright.records.codes import Stage

BEFORE_FIRST_CALL = (
    *(Stage.BUILD, Stage.PREPARE_JUDGE, Stage.START_JUDGE, Stage.CHECK_PROBLEM),
    *(Stage.LOAD, Stage.CONSTRUCT),
)
"""Stages in which no call of the candidate has begun."""


def fails_like_a_call(stage: Stage | None, exception: str | None) -> bool:
    """Tell whether the constructor raised `RuntimeError` or a subclass of it."""
    kind = getattr(builtins, exception or "", None)
    return stage == Stage.CONSTRUCT and isinstance(kind, type) and issubclass(kind, RuntimeError)
