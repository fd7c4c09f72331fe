"""Without a layer of isolation every attack of the self-test succeeds."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.processes.isolation_tools import NONE, linux_only, needs_root
from tests.run_in_fork import in_fork
from tilewright.runner.sandbox import selftests

# The attack forks as often as it can: each fork of a large process takes long.
# One layer keeps a process on some of several cores, so it needs more than one.
pytestmark = [linux_only, needs_root, pytest.mark.one_thread, pytest.mark.timed]


def test_every_attack_succeeds_without_layers():
    def step() -> dict[str, str]:
        with selftests.bait() as bait:
            # Kept small: so many are forked and opened before the attack gives up.
            few = selftests.adapt(replace(NONE, processes=4, descriptors=40), bait)
            reader, writer = os.pipe()
            os.environ["TILEWRIGHT_SELFTEST_SECRET"] = "open"
            attack = selftests.payload(bait, few, writer)
            here = os.getpid()
            attack(dict.fromkeys(selftests.ISOLATION_LAYERS, ""))
            if os.getpid() != here:
                os._exit(0)
            return selftests.collect(reader)

    found = in_fork(step)
    open_layers = {layer for layer, text in found.items() if "got through" in text}
    assert open_layers == {*selftests.ATTACKS}
