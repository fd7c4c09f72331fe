"""Files that appear whole or not at all, also with several writers and after a kill."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file: a reader sees the old one or the new one. Missing folders are made.

    Raises:
        OSError: it cannot be written; the old file is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        # Also an interrupt leaves no half-written file. The error goes on.
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
