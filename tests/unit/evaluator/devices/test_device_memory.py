"""How much memory of a device must become free, whose, and what is stored of a need."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.devices.device_memory import (
    FILE,
    MIN_RECORDED_BYTES,
    MemoryAccount,
    choose_holders,
    known_need,
    record_need,
    shortage,
)
from tilewright.evaluator.devices.nvml import Conditions
from tilewright.evaluator.devices.recorded_environment import read_by_device

GIB = 1 << 30
FULL = Conditions(used_bytes=60 * GIB, total_bytes=80 * GIB)


@pytest.mark.parametrize(
    ("need", "own", "found", "wanted"),
    [
        (20, 0, FULL, 0),
        (21, 0, FULL, 1),
        (50, 10, FULL, 20),
        (50, 40, FULL, 0),
        # All of the device, and no more.
        (500, 0, FULL, 60),
        (500, 0, None, 0),
        (500, 0, Conditions(total_bytes=80 * GIB), 0),
        (500, 0, Conditions(used_bytes=60 * GIB), 0),
    ],
)
def test_a_shortage_is_what_neither_is_free_nor_held_already(need, own, found, wanted):
    assert shortage(need * GIB, own * GIB, found) == wanted * GIB


HELD = st.dictionaries(st.text(min_size=1), st.integers(0, 1 << 40), max_size=8)


@given(HELD, st.integers(-5, 1 << 42))
def test_as_few_holders_are_chosen_as_cover_the_shortage(held, lacking):
    chosen = choose_holders(held, lacking)
    freed = sum(held[name] for name in chosen)

    assert all(held[name] for name in chosen)
    assert len(set(chosen)) == len(chosen)
    if freed < lacking:
        assert freed == sum(held.values())
    elif chosen:
        assert freed - min(held[name] for name in chosen) < lacking
    assert bool(chosen) == (lacking > 0 and any(held.values()))


def test_a_need_is_stored_by_device_and_problem_and_only_grows(tmp_path):
    small, large = MIN_RECORDED_BYTES - 1, 20 * GIB
    record_need(tmp_path, "one", "tiny", small)
    assert not (tmp_path / FILE).exists()
    record_need(tmp_path, "one", "big", large)
    record_need(tmp_path, "one", "other", 3 * GIB)
    record_need(tmp_path, "two", "big", 4 * GIB)
    record_need(tmp_path, "one", "big", large // 2)
    record_need(tmp_path, "one", "big", large + large // 50)

    assert known_need(tmp_path, "one", "big") == large
    assert known_need(tmp_path, "two", "big") == 4 * GIB
    assert known_need(tmp_path, "one", "other") == 3 * GIB
    assert known_need(tmp_path, "one", "tiny") is None
    record_need(tmp_path, "one", "big", 2 * large)
    assert known_need(tmp_path, "one", "big") == 2 * large
    assert not list(tmp_path.glob(".new-*"))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"one": 5}', '{"one": {"big": "much"}}', '{"one": ["big"]}']
)
def test_a_damaged_file_of_needs_counts_as_none_and_is_replaced(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert known_need(tmp_path, "one", "big") is None
    record_need(tmp_path, "one", "big", 4 * GIB)
    assert known_need(tmp_path, "one", "big") == 4 * GIB
    assert json.dumps(read_by_device(tmp_path / FILE))


def test_what_others_and_idle_processes_hold_is_no_use_of_the_evaluation():
    memory = MemoryAccount(before=FULL, others_bytes=30 * GIB)
    now = Conditions(used_bytes=75 * GIB, total_bytes=80 * GIB)

    assert memory.used_by_evaluation(now, 5 * GIB) == 40 * GIB
    assert memory.used_by_evaluation(now, 50 * GIB) == 0
    assert memory.used_by_evaluation(None, 0) is None
    assert MemoryAccount().used_by_evaluation(now, 0) is None
