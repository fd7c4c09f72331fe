"""The builder: compiles a candidate's native code inside the sandbox, before any device lease.

A C ABI source is compiled directly. An extension is built by importing the candidate's module,
which calls torch's own `load_inline` or `load`; the shared libraries are read back as bytes and
never loaded by anything of ours outside a contestant of the same candidate.
"""

from __future__ import annotations

import os
import socket
import subprocess
from typing import Any

from tilewright.runner.loaders import python
from tilewright.runner.main import ROOT, _write_files, describe_error
from tilewright.wire.frames import MAX_BODY_BYTES, Channel

HEADER = os.path.join(os.path.dirname(python.__file__), "tilewright.h")
EXTENSIONS = "/tmp/extensions"


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Build what one frame asks for, answer with the libraries, and end."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    frame = channel.receive()
    fields = frame.fields
    try:
        header = {"path": "tilewright.h", "size": len(fields["header"])}
        paths = _write_files([*fields["files"], header], frame.body + fields["header"].encode())
        channel.send("entering")
        if fields["build"] == "c_abi":
            artifacts = _compile(fields, paths)
        else:
            artifacts = _import(fields, paths)
    except BaseException as error:  # noqa: BLE001 - whatever a build raises is data
        channel.send("error", {"during": "build", **describe_error(error)})
        return
    _answer(channel, artifacts)


class BuildError(Exception):
    """The compiler refused the source."""


def _compile(fields: dict[str, Any], paths: dict[str, str]) -> dict[str, str]:
    library = os.path.join(ROOT, "kernel.so")
    sources = [paths[name] for name in fields["units"]]
    command = [*fields["command"], "-I", ROOT, "-o", library, *sources]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise BuildError(done.stderr.decode(errors="replace").replace(ROOT + "/", "")[:3500])
    return {"kernel": library}


def _import(fields: dict[str, Any], paths: dict[str, str]) -> dict[str, str]:
    os.environ["TORCH_EXTENSIONS_DIR"] = EXTENSIONS
    os.makedirs(EXTENSIONS, exist_ok=True)
    python.import_file(paths[fields["files"][0]["path"]])
    found: dict[str, str] = {}
    for name in sorted(os.listdir(EXTENSIONS)):
        library = os.path.join(EXTENSIONS, name, f"{name}.so")
        if os.path.exists(library):
            found[name] = library
    return found


def _answer(channel: Channel, artifacts: dict[str, str]) -> None:
    bodies = []
    for path in artifacts.values():
        with open(path, "rb") as file:
            bodies.append(file.read())
    total = sum(len(body) for body in bodies)
    if total > MAX_BODY_BYTES:
        message = f"libraries of {total} bytes, at most {MAX_BODY_BYTES}"
        channel.send(
            "error", {"during": "build", "type": "BuildError", "message": message, "traceback": []}
        )
        return
    sizes = {name: len(body) for name, body in zip(artifacts, bodies, strict=True)}
    channel.send("built", {"artifacts": sizes}, b"".join(bodies))
