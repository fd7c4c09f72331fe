"""Seeds are derived by name from one secret root."""

from __future__ import annotations

import re

from tilewright.evaluator.seeds import derive, generator, random_root

ROOT = "0123456789abcdef" * 2


def test_roots_have_128_bits_and_are_never_drawn_twice():
    roots = {random_root() for _ in range(200)}

    assert len(roots) == 200
    assert all(re.fullmatch(r"[0-9a-f]{32}", root) for root in roots)


def test_a_seed_follows_from_root_and_names_alone():
    # Written down, so that reports of today can be replayed with the evaluator of tomorrow.
    assert derive(ROOT, "inputs", "tiny", "nominal", 0) == 8866286820636218019
    assert derive(ROOT, "init") == derive(ROOT, "init")
    assert derive(ROOT, "a", 1) == derive(ROOT, "a", "1")


def test_other_names_and_other_roots_give_other_seeds():
    seeds = {derive(ROOT, "inputs", case, repeat) for case in "abcd" for repeat in range(250)}
    other = {derive(random_root(), "inputs", "a", 0) for _ in range(100)}

    assert len(seeds | other) == 1100
    assert all(0 <= seed < 1 << 63 for seed in seeds)


def test_generators_repeat_by_name():
    first, again = generator(ROOT, "slot"), generator(ROOT, "slot")

    assert [first.random() for _ in range(5)] == [again.random() for _ in range(5)]
    assert generator(ROOT, "slot").random() != generator(ROOT, "perturb").random()
