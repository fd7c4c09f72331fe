"""Bugs in the oracle, in the comparison of an output's error, and in input variations."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import UNIT, planted

PRECISION = (
    *planted(
        "evaluator/judge/float64_oracle.py",
        UNIT + "evaluator/judge/test_reference.py",
        (
            "the oracle is float32",
            "        return widened(value).clone()\n",
            "        return value.clone()\n",
        ),
        (
            "the oracle is float32 where a reference names it",
            "[Float64Casts(SINGLE), nullcontext(), Float64Casts()]",
            "[nullcontext(), Float64Casts()]",
        ),
    ),
    *planted(
        "evaluator/judge/truncated_factors.py",
        UNIT + "evaluator/judge/test_truncated_factors.py",
        (
            "any multiple of the error of truncated factors is allowed",
            "MAX_SHARE = 2.0",
            "MAX_SHARE = 2e9",
        ),
        (
            "factors in bfloat16 are taken for truncated ones",
            "RoundedProducts(truncated_to_tf32)",
            "RoundedProducts(lambda value: value.bfloat16().float())",
        ),
        (
            "truncated factors are allowed where tf32 is not",
            "if not reference.precision.allows_tf32 or sample.random:",
            "if sample.random:",
        ),
    ),
    *planted(
        "evaluator/judge/number_formats.py",
        UNIT + "evaluator/judge/test_comparison.py",
        ("absolute tolerance", "size = numbers.abs()", "size = torch.ones_like(numbers)"),
    ),
    *planted(
        "evaluator/judge/nominal_errors.py",
        UNIT + "evaluator/judge/test_nominal_errors.py",
        ("16-bit outputs may be off by a rounding", "NOISE = 2.0**-16", "NOISE = 2.0**-9"),
        ("small elements may be left out", "MAX_SMALL = 1 / 64", "MAX_SMALL = 1"),
    ),
    *planted(
        "evaluator/judge/element_errors.py",
        UNIT + "evaluator/judge/test_comparison.py",
        ("many elements may exceed the tolerance", "wrong <= FEW * count", "wrong <= count"),
        (
            "outliers have no limit",
            "each.outlier_ratio <= 1.0 for each",
            "each.outlier_ratio >= 0.0 for each",
        ),
    ),
    *planted(
        "evaluator/judge/integer_comparison.py",
        UNIT + "evaluator/judge/test_comparison.py",
        ("integers may be off by one", "(value != output)", "(value + 1 < output)"),
    ),
    *planted(
        "evaluator/judge/inputs.py",
        UNIT + "evaluator/judge/test_inputs.py",
        (
            "no variation is judged where elements are infinite by design",
            "if infinite is None or usual is None or not torch.equal(infinite, usual):",
            "if True:",
            "test_infinite_elements_that_nominal_inputs_have_too_skip_no_variation",
        ),
    ),
    *planted(
        "evaluator/judge/integer_comparison.py",
        UNIT + "evaluator/judge/test_integer_comparison.py",
        (
            "rounding that changes much excuses any change",
            "and moves.total <= limit",
            "",
            "test_rounding_that_changes_much_excuses_no_other_change",
        ),
        (
            "counts may be off by any number",
            "or self.furthest > FURTHEST_FACTOR * rounding.furthest",
            "or False",
            "test_counts_may_move_as_rounding_moves_them",
        ),
    ),
    *planted(
        "evaluator/judge/integer_comparison.py",
        UNIT + "evaluator/judge/test_error_statistics.py",
        (
            "any index is right where values tie",
            "return _distinct(value, dim) <= _distinct(output, dim)",
            "return True",
        ),
        (
            "equal inputs admit any index",
            "if bool((source == source.narrow",
            "if not bool((source == source.narrow",
        ),
    ),
    *planted(
        "evaluator/judge/error_statistics.py",
        UNIT + "evaluator/judge/test_error_statistics.py",
        ("the factor of float32 holds for 16 bits", "SHORT_FACTOR = 3.0", "SHORT_FACTOR = 64.0"),
        ("a rough reference admits 64 times", "ROUGH_FACTOR = 5.0", "ROUGH_FACTOR = 64.0"),
        (
            "bias is not compared",
            "SHORT_BIAS, SINGLE_BIAS = 0.2, 8.0",
            "SHORT_BIAS, SINGLE_BIAS = 9.0, 9.0",
        ),
        ("columns may be lost", "COLUMN_SHARE = 0.25", "COLUMN_SHARE = 2.5"),
        ("rows may be lost", "ROW_SHARE = 2.0**-10", "ROW_SHARE = 2.0"),
        ("small elements may be lost", "LOST = 0.5", "LOST = 1.5"),
    ),
    *planted(
        "evaluator/judge/tf32_products.py",
        UNIT + "evaluator/judge/test_tf32_products.py",
        ("factors keep eight bits", "DROPPED_BITS = 13", "DROPPED_BITS = 16"),
        ("factors are not rounded", "(bits + half)", "(bits + 0)"),
        (
            "tf32 is admitted where it is forbidden",
            "if not reference.precision.allows_tf32 or not",
            "if not",
        ),
        (
            "rows may be off as the library's own choice is",
            "return replace(wider, value=rounded)",
            "return wider",
        ),
    ),
    *planted(
        "evaluator/judge/variations.py",
        UNIT + "evaluator/judge/test_variations.py",
        ("parts do not differ", "made = made * scale + shift * spread", "made = made + 1"),
        (
            "bfloat16 has few values",
            "if whole or kind in (torch.float32, torch.float64):",
            "if True:",
        ),
    ),
)
