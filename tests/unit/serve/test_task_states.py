"""The states of tasks: whatever happens, queues and phases agree, and no transition is skipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.serve.store.tables import Task
from tilewright.serve.task_states import Phase, TaskState, TaskStates

KEYS = st.sampled_from("abcd")
CLIENTS = st.sampled_from(["one", "two"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("queue"), KEYS, CLIENTS),
        st.tuples(st.just("cancel"), KEYS),
        st.tuples(st.just("start")),
        st.tuples(st.just("finish"), st.booleans()),
    ),
    max_size=60,
)


def item_of(key, client="one", sequence=None):
    number = ord(key) if sequence is None else sequence
    return Task(key, client, f"problem {key}", 1, 0.0, sequence=number)


@given(STEPS)
def test_queues_hold_each_queued_task_once_for_each_of_its_clients(steps):
    states = TaskStates()
    queued: dict[str, bool] = {}
    for step in steps:
        match step:
            case ("queue", key, client):
                states.queue(item_of(key, client), client)
                queued[key] = True
            case ("cancel", key):
                states.cancel(key)
                queued[key] = False
            case ("start",):
                entry = states.next()
                if entry is not None:
                    states.move(states.serve(entry), Phase.RUNNING)
                    queued[entry.key] = False
            case ("finish", repeat):
                for key, task in list(states.running.items()):
                    was_cancelled = task.phase is Phase.CANCELLING
                    states.finish(task, repeat=repeat and not was_cancelled, queue=True)
                    queued[key] = queued[key] or (repeat and not was_cancelled)
        waiting = {key for key, is_queued in queued.items() if is_queued} - set(states.running)
        assert states.waiting == len(waiting)
        assert sum(states.waiting_by_client().values()) >= len(waiting)
    while (entry := states.next()) is not None:
        states.move(states.serve(entry), Phase.RUNNING)
    assert states.waiting_by_client() == {}
    assert states.waiting == 0


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.CANCELLING, Phase.ENDED])
def test_a_transition_that_is_not_in_the_table_is_refused(phase):
    with pytest.raises(ValueError, match="a: from"):
        TaskStates().move(TaskState(item_of("a")), phase)


def test_a_task_that_is_submitted_again_while_it_is_cancelled_is_queued_for_the_new_client():
    states = TaskStates()
    states.queue(item_of("a", "one"), "one")
    entry = states.next()
    assert entry is not None
    task = states.serve(entry)
    states.move(task, Phase.RUNNING)
    states.cancel("a")
    assert task.phase is Phase.CANCELLING
    states.queue(item_of("a", "two", 9), "two")
    states.finish(task, repeat=False, queue=True)
    assert (task.phase, states.waiting_by_client()) == (Phase.QUEUED, {"two": 1})
