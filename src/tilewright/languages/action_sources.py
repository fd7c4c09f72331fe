"""The legal actions on a program, as its language finds them."""

from __future__ import annotations

from functools import cache

from tilewright.errors import PluginError
from tilewright.languages.actions import Action, ActionSource, whole_program
from tilewright.registry import load


def actions_on(code: str, language: str) -> tuple[Action, ...]:
    """Return the legal actions on a program.

    In a language that finds no regions, built in or of a plug-in, the whole program is one region.
    """
    source = _source(language) if language else None
    return whole_program() if source is None else source.actions(code)


@cache
def _source(language: str) -> ActionSource | None:
    try:
        found = load("languages", language)
    except PluginError:
        return None
    return found if isinstance(found, ActionSource) else None
