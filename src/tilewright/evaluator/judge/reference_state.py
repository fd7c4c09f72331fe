"""A look at a reference that leaves no trace: each of its runs teaches the judge about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tilewright.evaluator.judge.reference import Reference

LEARNED = ("random", "stateful", "call_s", "placement", "precision")
"""Attributes of a reference that its runs change, and that decide how later ones are compared."""


@contextmanager
def undisturbed(reference: Reference) -> Iterator[None]:
    """Leave the reference as it was."""
    kept = replace(
        reference,
        placement=replace(reference.placement),
        precision=replace(reference.precision, double=None),
    )
    try:
        yield
    finally:
        for name in LEARNED:
            setattr(reference, name, getattr(kept, name))
