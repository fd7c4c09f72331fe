"""A folder for an agent: a skill for the tools, and the client's configuration of the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.errors import ConfigError, writing
from tilewright.serve.mcp import NAME

SKILL, CLIENT = "SKILL.md", ".mcp.json"
TEMPLATE = Path(__file__).parent / "skill.md"
CALL_MS = 900_000
"""Timeout of a call for the client: an evaluation may run three times."""


def write_workspace(
    folder: Path, problem: str, command: Sequence[str], variables: Mapping[str, str]
) -> list[Path]:
    """Write the files into a new or existing folder, overwrite none, and return their paths.

    `command` starts the server, with these environment variables; the client runs it in `folder`.
    """
    server: dict[str, object] = {"type": "stdio", "command": command[0], "args": [*command[1:]]}
    server["timeout"] = CALL_MS
    if variables:
        server["env"] = dict(variables)
    skill = TEMPLATE.read_text(encoding="utf-8").replace("{problem}", problem)
    texts = {
        folder / SKILL: skill,
        folder / CLIENT: json.dumps({"mcpServers": {NAME: server}}, indent=2) + "\n",
    }
    there = [path for path in texts if path.exists() or path.is_symlink()]
    if there:
        names = ", ".join(str(path) for path in there)
        raise ConfigError(f"--init {folder}: {names} would be overwritten; name another folder")
    with writing(f"--init {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            # "x": never overwrite a file that was just created.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    return list(texts)
