"""Retries: how often, after which delays, and what stops them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.executors.retrying import Backoff, retry


class Unreliable:
    """Fails a number of times and then returns the number of its calls."""

    def __init__(self, failures, kind=OSError):
        self.failures, self.kind, self.calls = failures, kind, 0

    def __call__(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.kind(f"failure {self.calls}")
        return self.calls


def of_the_system(error):
    return 0.0 if isinstance(error, OSError) else None


def test_a_call_is_repeated_until_it_returns_and_the_delay_doubles():
    slept = []
    assert retry(Unreliable(4), Backoff(0.5), of_the_system, slept.append) == 5
    assert slept == [0.5, 1.0, 2.0, 4.0]


def test_the_last_attempt_raises_its_own_error_and_is_not_waited_after():
    slept, call = [], Unreliable(9)
    with pytest.raises(OSError, match="failure 3"):
        retry(call, Backoff(1.0, attempts=3), of_the_system, slept.append)
    assert (call.calls, slept) == (3, [1.0, 2.0])


def test_an_error_of_another_kind_is_final():
    call = Unreliable(1, KeyError)
    with pytest.raises(KeyError):
        retry(call, Backoff(1.0), of_the_system, lambda _: None)
    assert call.calls == 1


def test_a_true_result_of_the_sleep_stops_the_retries():
    call = Unreliable(9)
    with pytest.raises(OSError, match="failure 1"):
        retry(call, Backoff(1.0), of_the_system, lambda _: True)
    assert call.calls == 1


def test_a_server_may_ask_for_a_longer_delay_up_to_the_limit():
    backoff = Backoff(1.0, max_delay_s=10.0)
    assert backoff.next_delay(4.0) == 4.0
    assert backoff.next_delay() == 8.0
    assert backoff.next_delay(2.0) == 10.0
    assert backoff.failed == 3


@given(
    st.floats(1e-3, 10),
    st.integers(1, 20),
    st.floats(1e-3, 100),
    st.lists(st.floats(0, 100), max_size=30),
)
def test_delays_are_as_many_as_attempts_allow_and_within_their_limits(
    delay_s, attempts, most, asked
):
    backoff = Backoff(delay_s, attempts=attempts, max_delay_s=most)
    delays = [backoff.next_delay(least) for least in asked]
    given_ = [delay for delay in delays if delay is not None]
    assert given_ == delays[: len(given_)]
    assert len(given_) == min(len(asked), attempts - 1)
    assert all(
        min(least, most) <= delay <= most for delay, least in zip(given_, asked, strict=False)
    )
    assert given_ == sorted(given_)
