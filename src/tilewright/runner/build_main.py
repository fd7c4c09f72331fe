"""The build process: it compiles a candidate's native code in the sandbox, before a device lease.

This process runs foreign code and dies after one answer: the shared libraries, as untrusted as
the source. For an extension it imports the candidate's module, which calls torch's own builder.
If a runner of the candidate requested the build, it makes the call that the runner described.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.utils import cpp_extension

from tilewright.runner.loaders import python, short_headers
from tilewright.runner.loaders.extension_builds import Recorder
from tilewright.runner.main import ROOT, describe_error, write_files
from tilewright.wire.builder_calls import CALL_FILE, BuilderCall
from tilewright.wire.frames import MAX_BODY_BYTES, Channel, Frame
from tilewright.wire.names import COMPILER_REMARKS, WHOLE_HEADER_SOURCES

Made = tuple[dict[str, str], dict[str, bytes]]
"""Paths of libraries, and what compilers said of builds, by key."""
EXTENSIONS = "/tmp/extensions"
"""Folder inside the sandbox in which torch builds extensions."""
MAX_REMARKS_BYTES = 1 << 18
"""Bytes of the compiler's remarks: headers have thousands of loops."""
MAX_COMPILER_OUTPUT = 3500
"""Characters of a compiler's messages that a report holds."""


class BuildError(Exception):
    """The compiler refused the source, or the result is too large to send."""


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Build the candidate of one frame, answer with the libraries, and end."""
    answer_once(sock, applied, "build", _build)


def answer_once(
    sock: socket.socket,
    applied: dict[str, str],
    stage: str,
    build: Callable[[Frame, Channel], dict[str, bytes]],
) -> None:
    """Answer one frame with the artifacts that `build` returns, or with its error."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    frame = channel.receive()
    try:
        artifacts = build(frame, channel)
    except BaseException as error:  # noqa: BLE001 - any exception of foreign code is an answer
        channel.send("error", {"during": stage, **describe_error(error)})
        return
    sizes = {name: len(data) for name, data in artifacts.items()}
    channel.send("built", {"artifacts": sizes}, b"".join(artifacts.values()))


def _build(frame: Frame, channel: Channel) -> dict[str, bytes]:
    fields = frame.fields
    header = {"path": "tilewright.h", "size": len(fields["header"])}
    paths = write_files([*fields["files"], header], frame.body + fields["header"].encode())
    channel.send("entering")
    match fields["build"]:
        case "c_abi":
            libraries, errors = _compile(fields, paths)
        case "extension":
            libraries, errors = _import(fields, paths)
        case _:
            libraries, errors = _make_call(paths)
    artifacts = {name: Path(path).read_bytes() for name, path in libraries.items()}
    artifacts |= errors
    total = sum(map(len, artifacts.values()))
    if total > MAX_BODY_BYTES:
        raise BuildError(f"libraries of {total} bytes, at most {MAX_BODY_BYTES}")
    return artifacts


def _compile(fields: dict[str, Any], paths: dict[str, str]) -> Made:
    library = os.path.join(ROOT, "kernel.so")
    sources = [paths[name] for name in fields["units"]]
    remarks = Path(ROOT, "remarks.txt")
    flags = [f"{fields['remarks']}{remarks}"] if fields["remarks"] else []
    command = [*fields["command"], *flags, "-I", ROOT, "-o", library, *sources]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        text = done.stderr.decode(errors="replace").replace(ROOT + "/", "")
        raise BuildError(text[:MAX_COMPILER_OUTPUT])
    kept = b""
    if remarks.exists():
        with remarks.open("rb") as file:
            kept = file.read(MAX_REMARKS_BYTES).replace(f"{ROOT}/".encode(), b"")
    return {"kernel": library}, {COMPILER_REMARKS: kept} if kept else {}


def _import(fields: dict[str, Any], paths: dict[str, str]) -> Made:
    """Import the candidate; return what torch builds meanwhile, and which builds failed."""
    recorder = _recorder()
    recorder.install()
    python.import_file(paths[fields["files"][0]["path"]])
    return recorder.libraries, recorder.errors | _whole_headers()


def _make_call(paths: dict[str, str]) -> Made:
    """Make one call that a runner described; a failure is for the candidate to handle."""
    call = BuilderCall.decoded(Path(paths[CALL_FILE]).read_bytes())
    parts = [(path, text.encode()) for path, text in call.files.items()]
    sizes = [{"path": path, "size": len(data)} for path, data in parts]
    write_files(sizes, b"".join(data for _, data in parts))
    recorder = _recorder()
    with contextlib.suppress(Exception):
        recorder.make(call)
    return recorder.libraries, recorder.errors | _whole_headers()


def _recorder() -> Recorder:
    os.environ["TORCH_EXTENSIONS_DIR"] = EXTENSIONS
    os.makedirs(EXTENSIONS, exist_ok=True)
    if cpp_extension.CUDA_HOME is not None:
        compiler = os.path.join(cpp_extension.CUDA_HOME, "bin", "nvcc")
        short_headers.install(EXTENSIONS, compiler)
    return Recorder(EXTENSIONS, ROOT)


def _whole_headers() -> dict[str, bytes]:
    """Return the names of CUDA sources that needed all of torch's header, if there are any."""
    names = short_headers.whole_header_sources(EXTENSIONS)
    return {WHOLE_HEADER_SOURCES: ", ".join(names).encode()} if names else {}
