"""Sizes of a paged cache from free memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("transformers")

import transformers

from tilewright.errors import PolicyError
from tilewright.rl.engines.trl.cache_sizes import GIB, PAGE_TOKENS, CacheShape, plan_cache, shape_of

QWEN = CacheShape(28, 8, 128, 1024, 3072, 151_936, 2)


def test_with_enough_memory_all_rows_run_at_once():
    found = plan_cache(QWEN, [1000] * 64, 512, 64, 100 * GIB)
    # 1,512 tokens are 12 pages, and one is spare.
    assert (found.rows, found.pages) == (64, 64 * 13)
    assert found.batch_tokens == 8192
    assert found.planned_bytes < 0.85 * found.free_bytes


def test_less_memory_means_fewer_rows_and_never_more_than_fits():
    seen = [plan_cache(QWEN, [1000] * 64, 8192, 64, free * GIB) for free in (80, 40, 20, 10)]
    rows = [each.rows for each in seen]
    assert rows == sorted(rows, reverse=True)
    assert rows[-1] < rows[0]
    assert all(each.planned_bytes <= 0.85 * each.free_bytes for each in seen)


def test_long_rows_are_counted_at_their_own_length():
    found = plan_cache(QWEN, [10, 3000, 10], 100, 2, 100 * GIB)
    assert (found.rows, found.pages) == (2, 26 + 2)


def test_a_pass_is_a_multiple_of_the_rows():
    found = plan_cache(QWEN, [7, 9, 11], 4, 2, GIB * 10)
    assert found.batch_tokens % found.rows == 0
    assert 27 <= found.batch_tokens <= 8192


def test_a_row_that_does_not_fit_names_the_setting():
    with pytest.raises(PolicyError, match=r"machine\.sampler paged: one row of 9192 tokens"):
        plan_cache(QWEN, [1000], 8192, 64, GIB)


def test_the_bytes_of_a_page_are_those_of_its_keys_and_values():
    exact = PAGE_TOKENS * 28 * 2 * 8 * 128 * 2
    assert exact < QWEN.page_bytes < 1.1 * exact
    assert replace(QWEN, item_bytes=4).page_bytes > 1.9 * QWEN.page_bytes


def test_the_shape_is_read_from_a_configuration():
    config = transformers.Qwen3Config(
        vocab_size=151_936,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
    )
    assert shape_of(config, 2) == QWEN
