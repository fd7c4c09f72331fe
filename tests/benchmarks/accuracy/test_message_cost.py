"""The bar of message cost: it measures real round trips and fails on an expensive message."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy import message_cost


def test_every_message_makes_a_round_trip(monkeypatch):
    monkeypatch.setattr(message_cost, "TRIPS", 3)

    table = message_cost.measure()

    assert set(table) == set(message_cost.MESSAGES)
    assert all(value > 0 for value in table.values())


def test_a_message_that_costs_too_much_more_than_the_baseline_misses_the_bar(monkeypatch):
    limit = message_cost.MAX_ADDED_US

    def measured(checkout):
        ours = {"check": 50.0 + 2 * limit, "timed": 51.0 + 2 * limit}
        return ours if checkout == message_cost.ROOT else {"check": 50.0, "timed": 50.0}

    monkeypatch.setattr(message_cost, "measured", measured)

    (check,) = message_cost.run("check", baseline=Path("elsewhere"))
    (timed,) = message_cost.run("timed", baseline=Path("elsewhere"))

    assert check.held
    assert check.details["added_us"] == limit
    assert not timed.held
