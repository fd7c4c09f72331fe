"""A study in a few small files, so that it can move between machines. No torch.

The pack leaves out what a running training needs: checkpoints, sampled tokens, models of arms.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from tilewright.errors import ConfigError, writing
from tilewright.rl.study.study_folder import ARMS

PACK = "pack"
NAME = "study.tgz."
PART_BYTES, MAX_PARTS = 15_000_000, 4
"""Bytes of a file, and number of files: a study fits into what a lent machine gives back."""
LEFT_OUT = ("checkpoints", "rollouts", PACK)


class _Parts(io.RawIOBase):
    """A stream into files of at most `PART_BYTES` bytes. Lifetime: one archive."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._room = 0
        self.paths: list[Path] = []

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Append bytes; tarfile asks for nothing else."""
        rest = memoryview(data)
        while rest:
            if not self._room:
                self._next()
            with self.paths[-1].open("ab") as part:
                part.write(rest[: self._room])
            taken = min(len(rest), self._room)
            self._room -= taken
            rest = rest[taken:]
        return len(data)

    def _next(self) -> None:
        if len(self.paths) == MAX_PARTS:
            raise ConfigError(
                f"{self._folder.parent} is larger than {MAX_PARTS} files of "
                f"{PART_BYTES / 1e6:g} MB; copy the folder itself"
            )
        self.paths.append(self._folder / f"{NAME}{len(self.paths) + 1}")
        self.paths[-1].write_bytes(b"")
        self._room = PART_BYTES


def pack(folder: Path) -> list[Path]:
    """Write the folder of a study as a few files in its folder `pack`, and return them.

    Raises:
        ConfigError: it is too large for them.
    """
    place = folder / PACK
    with writing(place):
        place.mkdir(exist_ok=True)
        for old in place.glob(f"{NAME}*"):
            old.unlink()
        parts = _Parts(place)
        with tarfile.open(fileobj=parts, mode="w|gz") as archive:
            for path in sorted(folder.rglob("*")):
                relative = path.relative_to(folder)
                if path.is_file() and not _left_out(relative):
                    archive.add(path, arcname=str(relative), recursive=False)
    return parts.paths


def unpack_command(parts: list[Path]) -> str:
    """Return the command that makes the folder again elsewhere."""
    return f"mkdir -p DIR && cat {parts[0].parent}/{NAME}* | tar xz -C DIR"


def _left_out(relative: Path) -> bool:
    is_arm_model = relative.parts[0] == ARMS and "model" in relative.parts
    return is_arm_model or any(part in LEFT_OUT for part in relative.parts)
