"""Every setting does something."""

from __future__ import annotations

import ast

from tests.house.tree import SOURCE, parsed, python_files
from tilewright.config import leaves
from tilewright.rl.presets import Preset
from tilewright.rl.training import TrainConfig


def reads() -> set[str]:
    """Return the names that the package reads as an attribute or by a literal key."""
    found = set()
    for path in python_files(under=SOURCE):
        if path.is_relative_to(SOURCE / "config") or path.is_relative_to(SOURCE / "records"):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                found.add(str(node.slice.value))
    return found


def test_every_setting_is_read():
    known = reads()
    own = [*leaves(), *leaves(TrainConfig), *leaves(Preset)]
    assert not [leaf.path for leaf in own if leaf.field not in known]
