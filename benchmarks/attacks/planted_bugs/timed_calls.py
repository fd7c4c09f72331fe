"""Bugs in what timed calls are compared with, and in what a candidate may do outside of them."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bug import UNIT, planted

TIMED_CALLS = (
    *planted(
        "evaluator/judge/earlier_outputs.py",
        UNIT + "evaluator/judge/test_earlier_outputs.py",
        (
            "outputs that hardly had to change count as repeated",
            ">= MIN_DIFFERENT",
            ">= 1",
            "test_an_output_that_inputs_hardly_change_may_stay_as_it_is",
        ),
        (
            "right outputs are not known later",
            "if not sample.random or len(found) < len(outputs):",
            "if not answer.wrong or not sample.random or len(found) < len(outputs):",
            "test_the_outputs_of_an_earlier_call_are_repeated",
        ),
    ),
    *planted(
        "evaluator/judge/renewed_inputs.py",
        UNIT + "evaluator/judge/test_renewed_inputs.py",
        (
            "timed calls with uneven parts have no peak",
            "inputs.varied_arguments(args, structured, base, generator, thin=thin)",
            "inputs.varied_arguments(args, structured, base, generator)",
            "test_half_of_the_timed_calls_with_uneven_parts_have_a_peak",
        ),
    ),
    *planted(
        "evaluator/pipeline/timed_variations.py",
        UNIT + "evaluator/pipeline/test_timed_variations.py",
        (
            "timed calls get only variations that were checked",
            "name not in tried and name not in UNTIMED_VARIATIONS",
            "name in ()",
            "test_timed_calls_may_get_the_variations_that_were_not_checked",
        ),
        (
            "variations that the reference refuses are timed",
            "        if reason:\n            _record(session, case, name, reason)\n        tried",
            "        tried",
            "test_none_of_the_chosen_ones_is_refused_and_each_was_tried_once",
        ),
    ),
    *planted(
        "evaluator/timing/work_ahead.py",
        UNIT + "evaluator/timing/test_work_ahead.py",
        (
            "random numbers are not drawn ahead",
            "work_s = math.inf",
            "work_s = 0.0",
            "test_what_no_input_changes_may_be_made_before_each_call",
        ),
        (
            "memory that nobody wrote costs nothing",
            "return before_s + unwritten_s + ",
            "return before_s + ",
            "test_memory_that_nobody_wrote_counts_as_if_it_were_filled",
        ),
    ),
    *planted(
        "evaluator/timing/value_dependence.py",
        UNIT + "evaluator/timing/test_value_dependence.py",
        (
            "one long varied call is taken for noise",
            "sum(calls) / len(calls) > SLOWER",
            "bootstrap.median(calls) > SLOWER",
            "test_the_work_of_many_calls_in_one_varied_call_makes_no_gain",
        ),
    ),
    *planted(
        "evaluator/judge/written_pages.py",
        UNIT + "evaluator/judge/test_written_pages.py",
        (
            "the kernel's page of zeros counts as written",
            "kinds = (ZERO, ZERO, PRESENT | SWAPPED, 0)",
            "kinds = (0, 0, PRESENT | SWAPPED, 0)",
            "test_pages_that_were_only_read_are_unwritten_where_the_kernel_tells",
        ),
    ),
    *planted(
        "evaluator/timing/blocks.py",
        UNIT + "evaluator/timing/test_as_checked.py",
        (
            "no timed call is compared as a checked one",
            "(half == certain or choices.random() < AS_CHECKED_SHARE / over)",
            "False",
            "test_some_timed_calls_at_random_places_are_compared_as_checked_ones",
        ),
        (
            "slow comparisons as checked ones have no limit",
            "choices.random() < AS_CHECKED_SHARE / over)",
            "choices.random() < AS_CHECKED_SHARE)",
            "test_after_many_seconds_fewer_are_compared_so_and_never_none",
        ),
    ),
    *planted(
        "evaluator/judge/process.py",
        UNIT + "evaluator/judge/test_timed_calls.py",
        (
            "what a timed call loses by the rules of checked ones is not seen",
            "if difference is None and message.as_checked and self.rule is None:",
            "if False:",
            "test_small_elements_that_are_left_out_are_wrong_in_a_call_that_counts_as_checked",
        ),
    ),
)
