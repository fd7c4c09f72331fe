"""The key of a warm host: what a supervisor inherits, and what it has imported.

A client uses only the host of its own key. So a supervisor of a host behaves as one that the client
would start itself: of the same code, interpreter, environment, home and limits.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import resource
import site
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tilewright._version import __version__
from tilewright.registry import foreign_packages

OWN_FOLDER = Path(__file__).parents[1]
PATH_LISTS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Variables whose folders may be relative to the working folder, which a host does not share."""
OF_THE_TERMINAL = frozenset(
    {
        *("_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "WINDOWID", "GPG_TTY", "STY"),
        *("TERM_SESSION_ID", "XDG_SESSION_ID", "TMUX", "TMUX_PANE"),
        *("SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION"),
    }
)
"""Variables that differ between two terminals, and that nothing in an evaluation reads."""
OF_THE_PROCESS = frozenset(
    {"Umask", "Uid", "Gid", "Groups", "CapEff", "NoNewPrivs", "Seccomp", "Cpus_allowed_list"}
)
"""Lines of /proc/self/status that a child process inherits."""
CGROUP_LIMITS = ("memory.max", "memory.high", "cpu.max", "cpuset.cpus.effective", "pids.max")
PLUGIN_KINDS = ("checks", "languages")
"""Kinds of plug-ins that a supervisor imports."""


def host_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a host for a process with these variables.

    It names no folder relative to the working folder.
    """
    made = {name: text for name, text in variables.items() if name not in OF_THE_TERMINAL}
    for name in PATH_LISTS:
        if made.get(name):
            made[name] = os.pathsep.join(map(os.path.abspath, made[name].split(os.pathsep)))
    return made


def host_key(home: Path, environment: Mapping[str, str]) -> str:
    """Return the key of the host for this process, a home and the environment of a host."""
    parts = {
        "version": __version__,
        "package": list(_files(OWN_FOLDER)),
        "plug-ins": list(_plugin_files()),
        "interpreter": [sys.executable, sys.version, platform.machine(), sys.prefix],
        # A package that is installed or removed changes the time of its folder.
        "installed": [(path, _modified(path)) for path in _site_folders()],
        "environment": sorted(environment.items()),
        "home": os.path.abspath(home),
        "limits": list(_limits()),
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield each file below a folder, with its size and the time of its last change."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda item: item.name):
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(Path(entry.path))
            elif entry.is_file():
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _plugin_files() -> Iterator[tuple[str, int, int]]:
    """Yield the files of the packages whose plug-ins a supervisor imports."""
    for name in foreign_packages(PLUGIN_KINDS):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            # The supervisor cannot import it either.
            continue
        for folder in () if spec is None else spec.submodule_search_locations or ():
            yield from _files(Path(folder))
        if spec is not None and spec.origin is not None and os.path.isfile(spec.origin):
            status = os.stat(spec.origin)
            yield spec.origin, status.st_size, status.st_mtime_ns


def _site_folders() -> Iterable[str]:
    return [*site.getsitepackages(), site.getusersitepackages()]


def _modified(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _limits() -> Iterator[object]:
    """Yield what limits this process, and what it may see of the machine."""
    for name in sorted(item for item in vars(resource) if item.startswith("RLIMIT_")):
        yield name, resource.getrlimit(getattr(resource, name))
    yield os.getpriority(os.PRIO_PROCESS, 0)
    for name in sorted(os.listdir("/proc/self/ns")):
        with suppress(OSError):
            yield os.readlink(f"/proc/self/ns/{name}")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.partition(":")[0] in OF_THE_PROCESS:
            yield line
    yield from _cgroup_limits()


def _cgroup_limits() -> Iterator[tuple[str, str]]:
    """Yield the limits of this process's cgroup and of all above it, by file."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers:
                # The first version of cgroups: each hierarchy has files of its own.
                yield controllers, path
                continue
            place = Path("/sys/fs/cgroup") / path.lstrip("/")
            for folder in (place, *place.parents[: len(Path(path).parts) - 1]):
                for name in CGROUP_LIMITS:
                    with suppress(OSError):
                        yield name, (folder / name).read_text()
