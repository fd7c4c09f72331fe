"""What a hostile client may try without a judge, and one reference that looks around in it.

The whole list, with references that attack and hacks of the corpus, is `make bars
ONLY=serve_hostile`.
"""

from __future__ import annotations

import pytest

from benchmarks.serve import hostile_references
from benchmarks.serve.hostile_client import ATTACKS, CLIENTS, Target, afterwards

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
BEFORE = {}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    made = Target(tmp_path_factory.mktemp("hostile") / "home")
    BEFORE["mib"] = made.resident_mib()
    yield made
    if made.process.poll() is None:
        made.stop()


@pytest.mark.parametrize("name", ["paths", "headers", "large bodies", "slow requests", "flood"])
def test_an_attack_is_refused_and_the_server_continues(target, name):
    seen, held = ATTACKS[name](target)
    assert held, seen
    assert target.alive()


def test_a_reference_sees_nothing_of_the_server(target):
    text = hostile_references.sources(target.port, target.home)["reads"]
    fields = {"task_id": "reads", "reference_code": text, "backend": "torch"}
    fields["kernel_code"] = hostile_references.CANDIDATE
    status, said = target.ask("/evaluate", fields)
    assert (status, "SEEN:nothing" in said) == (200, True), said


def test_attacks_are_logged_and_leave_no_resources_behind(target):
    assert set(CLIENTS) == set(target.tokens)
    seen, held = afterwards(target, BEFORE["mib"])
    assert held, seen
