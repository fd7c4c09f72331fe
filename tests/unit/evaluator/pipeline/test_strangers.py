"""Memory of other programs is labelled, and that of this user's supervisors is not."""

from __future__ import annotations

import os

from tests.shared_device import GIB
from tilewright.evaluator.pipeline import strangers
from tilewright.evaluator.pipeline.memory_admission import admit


def test_siblings_are_no_strangers_and_strangers_are_labelled(begun):
    begun.start(40 * GIB)
    admit(begun.session, [])
    assert begun.session.observations.labels == []
    begun.strangers = 3 * GIB
    admit(begun.session, [])
    (label,) = begun.session.observations.labels
    assert label.name == "device_shared"
    assert label.detail == "3072 MiB of its memory were in use before we began, 3 % busy"


def test_the_drivers_list_tells_strangers_from_siblings_that_hold_more_than_they_say(
    begun, monkeypatch
):
    begun.start(2 * GIB)
    ledger = begun.session.host.ledger
    (sibling,) = ledger.supervisors() - {os.getpid()}
    listed = {sibling: 9 * GIB}
    monkeypatch.setattr(strangers, "device_processes", lambda _: listed)
    begun.strangers = 7 * GIB
    admit(begun.session, [])
    assert begun.session.observations.labels == []
    assert begun.session.memory.stranger_bytes == 0

    listed.update({sibling: 4 * GIB, 1: 5 * GIB})
    admit(begun.session, [])
    (label,) = begun.session.observations.labels
    first, second = label.detail.split("; ")
    assert first == "5120 MiB of its memory were in use before we began, 3 % busy"
    assert second.startswith("process 1, ")
