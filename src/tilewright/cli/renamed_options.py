"""Old names of options: accepted for one release, and renamed before click parses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tilewright.cli.output import print_line

__all__ = [
    "RENAMED_OPTIONS",
    "REPLACED_OPTIONS",
    "RenamingCommand",
    "RenamingGroup",
]

_MODEL = {"--strict-replay": "--strict-recording", "--in-flight": "--max-concurrency"}

RENAMED_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "eval": {
        "--require": "--min-speedup",
        "--require-layer": "--require-isolation",
        "--allow-import": "--python-path",
        "--replay": "--from-report",
    },
    "explain": {"--trace": "--profile"},
    "problems lint": {"--again": "--relint"},
    "bench": {**_MODEL, "--limit": "--max-candidates"},
    "optimize": _MODEL,
    "report": {"--full": "--all-candidates"},
    "data export": {
        "--against": "--decontaminate",
        "--with-label": "--include-label",
        "--without": "--exclude-label",
    },
    "train replay": {"--checks-off": "--without-checks"},
    "serve": {"--address": "--ray-address"},
}
"""For each verb: the old name of an option, and the new one."""

REPLACED_OPTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "serve": {
        "--make-token": ("token", "create"),
        "--revoke-token": ("token", "revoke"),
        "--list-tokens": ("token", "list"),
    },
}
"""For each group: an option that was removed, and the sub-command that does its work."""


class RenamingCommand(click.Command):
    """A command that accepts the old names of its options, and prints one line about them."""

    def __init__(self, *args: Any, verb: str = "", **extra: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **extra)
        self.renamed = RENAMED_OPTIONS.get(verb, {})
        self.replaced = REPLACED_OPTIONS.get(verb, {})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments under the new names.

        Raises:
            UsageError: both names of one option were given.
        """
        return super().parse_args(ctx, self._renamed(ctx, list(args)))

    def _renamed(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        given = {arg.partition("=")[0] for arg in args[:end]}
        changes: dict[str, str] = {}
        for old, new in self.renamed.items():
            if old in given and new in given:
                raise click.UsageError(f"{old} is the old name of {new}; give one of them", ctx)
            if old in given:
                changes[old] = new
        head = [_under(arg, changes) for arg in args[:end]]
        for old, words in self.replaced.items():
            if old in given:
                head = _sub_command(head, old, words)
                changes[old] = " ".join(words)
        if changes:
            pairs = ", ".join(f"{old} is now {new}" for old, new in changes.items())
            print_line(f"deprecated option: {pairs}")
        return [*head, *args[end:]]


class RenamingGroup(RenamingCommand, click.Group):
    """A group of commands that accepts the old names of its own options."""


def _under(arg: str, changes: Mapping[str, str]) -> str:
    name, equals, value = arg.partition("=")
    return f"{changes[name]}{equals}{value}" if name in changes else arg


def _sub_command(args: Sequence[str], old: str, words: Sequence[str]) -> list[str]:
    """Return arguments that call a sub-command, whose argument is the value of the old option."""
    place = next(number for number, arg in enumerate(args) if arg.partition("=")[0] == old)
    value = args[place].partition("=")[2]
    before, after = args[:place], args[place + 1 :]
    return [*words, *([value] if value else []), *after, *before]
