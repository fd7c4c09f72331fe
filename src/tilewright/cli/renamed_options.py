"""Old names of options: accepted for one release, and renamed before click parses them."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.cli.output import print_line
from tilewright.errors import ConfigError

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


def with_new_names(args: list[str]) -> list[str]:
    """Return the arguments under the new names, after one line about the old ones."""
    words = 2 if " ".join(args[:2]) in RENAMED_OPTIONS else 1
    verb = " ".join(args[:words])
    end = args.index("--") if "--" in args else len(args)
    head = [arg.partition("=") for arg in args[words:end]]
    given = {name for name, _, _ in head}
    changes: dict[str, str] = {}
    for old, new in RENAMED_OPTIONS.get(verb, {}).items():
        if old in given:
            changes[old] = new
            if new in given:
                raise ConfigError(f"{old} is the old name of {new}; give one of them")
    head = [(changes.get(name, name), equals, value) for name, equals, value in head]
    for old, command in REPLACED_OPTIONS.get(verb, {}).items():
        if old in given:
            place = next(number for number, (name, *_) in enumerate(head) if name == old)
            value, after = head[place][2], head[place + 1 :]
            # The value of the old option is the argument of the sub-command.
            called = [(word, "", "") for word in (*command, value) if word]
            head = [*called, *after, *head[:place]]
            changes[old] = " ".join(command)
    if changes:
        pairs = ", ".join(f"{old} is now {new}" for old, new in changes.items())
        print_line(f"deprecated option: {pairs}")
    return [*args[:words], *("".join(parts) for parts in head), *args[end:]]
