"""A packed study is the folder without checkpoints, tokens and models of arms."""

from __future__ import annotations

import os
import subprocess

import pytest

from tilewright.errors import ConfigError
from tilewright.rl.study import packing
from tilewright.rl.study.packing import pack, unpack_command

KEPT = ("study.yaml", "cold/run/model/weights", "arms/base-0/run/events.jsonl", "gate.json")
LEFT_OUT = (
    "cold/run/checkpoints/checkpoint-1/w",
    "arms/base-0/run/rollouts/a.safetensors",
    "arms/base-0/run/model/weights",
)


@pytest.fixture
def folder(tmp_path):
    for name in (*KEPT, *LEFT_OUT):
        path = tmp_path / "study" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(5000))
    return tmp_path / "study"


@pytest.mark.parametrize("part_bytes", [6000, 15_000_000])
def test_the_printed_command_makes_the_folder_again(folder, tmp_path, monkeypatch, part_bytes):
    monkeypatch.setattr(packing, "PART_BYTES", part_bytes)
    for _ in range(2):
        # A second pack replaces the first one.
        parts = pack(folder)
    assert all(part.stat().st_size <= part_bytes for part in parts)
    target = tmp_path / "again"
    command = unpack_command(parts).replace("DIR", str(target))
    subprocess.run(["bash", "-c", command], check=True)
    found = {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}
    assert found == set(KEPT)
    for name in KEPT:
        assert (target / name).read_bytes() == (folder / name).read_bytes()


def test_a_folder_that_is_too_large_is_refused(folder, monkeypatch):
    monkeypatch.setattr(packing, "PART_BYTES", 1000)
    with pytest.raises(ConfigError, match="larger than 4 files"):
        pack(folder)
