"""Landlock: the paths that a payload may read, run and write, whatever the file modes say.

The payload of a sandbox restricts itself before any foreign code, and cannot undo it.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable

from tilewright.runner.sandbox import syscalls

_CREATE_VERSION = 1
_RULE_PATH_BENEATH = 1

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
MAKE_CHAR = 1 << 6
MAKE_BLOCK = 1 << 11
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15

READ = READ_FILE | READ_DIR
READ_AND_RUN = READ | EXECUTE
# All rights except running programs, making devices, and device controls.
WRITE = 0x7FFF & ~(EXECUTE | MAKE_CHAR | MAKE_BLOCK)
DEVICE = READ | WRITE_FILE | IOCTL_DEV
_ON_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_TCP_BIND_AND_CONNECT = 0b11
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

# Bits of handled_access_fs that each version of the interface knows.
_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15}


def version() -> int:
    """Return the version of the kernel's Landlock interface; without one this raises OSError."""
    return syscalls.syscall("landlock_create_ruleset", 0, 0, _CREATE_VERSION)


def restrict(rules: Iterable[tuple[str, int]]) -> str:
    """Confine the calling thread, and what it forks, to `rules`: paths and their rights.

    Where the kernel can, this forbids TCP, and signals and abstract sockets out of the sandbox. A
    path that does not exist grants nothing. Returns "", or what this kernel cannot restrict. After
    an OSError nothing is restricted.
    """
    known = version()
    file_rights = (1 << _FS_BITS.get(known, 16)) - 1
    handled = [file_rights]
    if known >= 4:
        handled.append(_TCP_BIND_AND_CONNECT)
    if known >= 6:
        handled.append(_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = syscalls.syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & file_rights)
        syscalls.syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
    return missing(known)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            return
        raise
    try:
        if not os.path.isdir(path):
            rights &= _ON_A_FILE
        if rights:
            rule = struct.pack("=Qi", rights, fd)
            syscalls.syscall("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)


def missing(known: int) -> str:
    """Return a text with what version `known` does not restrict; empty: nothing."""
    since = {"truncation": 3, "TCP": 4, "device controls": 5, "signals": 6}
    gaps = [what for what, first in since.items() if known < first]
    return f"partial: version {known} does not restrict {', '.join(gaps)}" if gaps else ""
