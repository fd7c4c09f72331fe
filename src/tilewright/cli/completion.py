"""Completion in a shell: addresses of problems, and names of settings."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from tilewright import config
from tilewright.errors import TilewrightError
from tilewright.problems.imported_sets import find_problems, imported
from tilewright.problems.loader import bundled_names

MOST = 500
"""Most suggestions; a set has hundreds of problems."""


def problems(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the problems whose addresses begin with a text, else files.

    The problems of an imported set follow once its name and a slash are typed.
    """
    name = incomplete.partition("/")[0]
    try:
        home = config.load().home
        sets = list(dict.fromkeys(each for each, _, _ in imported(home)))
        found = [*bundled_names(), *(f"{each}/" for each in sets)]
        if "/" in incomplete and name in (*sets, "bundled"):
            found = [item.id for item in find_problems(name, home)]
    except TilewrightError:
        # A completion has nobody to tell.
        found = []
    return _beginning(found, incomplete) or [CompletionItem(incomplete, type="file")]


def settings(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the settings whose names begin with a text, each with an equals sign."""
    return _beginning((f"{leaf.path}=" for leaf in config.leaves()), incomplete)


def _beginning(names: Iterable[str], text: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(text)][:MOST]
