"""The libraries of the audit, by the name that a package index has for them."""

from __future__ import annotations

from benchmarks.audit.libraries import conch, flag_gems, flash_linear_attention, liger
from benchmarks.audit.libraries.base import Call, Claim, Library, NotJudged

__all__ = ["LIBRARIES", "Call", "Claim", "Library", "NotJudged"]

LIBRARIES: dict[str, Library] = {
    module.LIBRARY.name: module.LIBRARY
    for module in (liger, flag_gems, flash_linear_attention, conch)
}
