"""Outputs that lay in memory before their call."""

from __future__ import annotations

import pytest
import torch

from tilewright.evaluator.judge.ready_outputs import GIVEN_BACK, SECTOR_BYTES, WORDS, ReadyOutputs

SECTORS = 1 << 16
OUTPUT = (1 << 20, 1 << 21)


def found_after(change, initial=lambda memory: memory.fill_(GIVEN_BACK)) -> int:
    """Return the bytes that lay ready in a call that makes a change in memory."""
    memory = torch.zeros(SECTORS, WORDS, dtype=torch.int64)
    initial(memory)
    ready = ReadyOutputs(torch.device("cpu"))
    ready.read_before(memory)
    rows = slice(OUTPUT[0] // SECTOR_BYTES, OUTPUT[1] // SECTOR_BYTES)
    change(memory[rows].view(torch.float32))
    ready.read_after(memory)
    return ready.ready_bytes([OUTPUT])


def test_an_output_that_the_call_writes_was_not_ready():
    assert found_after(lambda output: output.normal_()) == 0
    assert found_after(lambda output: output.zero_()) == 0


def test_an_output_that_was_there_before_is_found_whole():
    size = OUTPUT[1] - OUTPUT[0]
    assert found_after(lambda _: None, lambda memory: memory.zero_()) == size


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_the_part_that_the_call_left_as_it_was_is_estimated(share):
    def written(output):
        output[int(share * len(output)) :].normal_()

    found = found_after(written, lambda memory: memory.zero_())
    assert found / (OUTPUT[1] - OUTPUT[0]) == pytest.approx(share, abs=0.05)


def test_zeros_at_random_places_of_reused_memory_are_no_output_that_lay_ready():
    def rectified(memory):
        floats = memory.view(torch.float32)
        floats.copy_(torch.relu(torch.randn(floats.shape)))

    assert found_after(rectified, rectified) == 0


def test_memory_that_its_caller_has_overwritten_is_no_output():
    # An output of minus ones has the same bytes.
    assert found_after(lambda _: None) == 0


def test_a_small_output_of_which_few_places_are_read_says_nothing():
    memory = torch.zeros(SECTORS, WORDS, dtype=torch.int64)
    ready = ReadyOutputs(torch.device("cpu"))
    ready.read_before(memory)
    ready.read_after(memory)
    assert ready.ready_bytes([(0, 8 * SECTOR_BYTES)]) == 0
    assert ready.ready_bytes([(-(1 << 30), -(1 << 20))]) == 0
