"""The harness in our own process is told that we are done before we have begun.

A sync page, an event or a flag found in the frames below us is raised first.

family: C4
problem: softmax
expect: incorrect or rejected or failed
twin: c4_own_flag.py
source: robust-evaluation C4; a completion flag that the candidate can reach
"""

import sys
import threading

import torch


def raise_flags():
    frame = sys._getframe(2)
    while frame is not None:
        names = frame.f_locals
        token, sequence = names.get("page"), names.get("sequence")
        if isinstance(token, memoryview) and isinstance(sequence, int):
            token[16] = sequence
        for value in names.values():
            if isinstance(value, threading.Event):
                value.set()
        if "t" in names and isinstance(names["t"], float):  # a start stamp: "it began just now"
            import time

            real = time.perf_counter
            state = {"calls": 0}

            def once():
                state["calls"] += 1
                if state["calls"] == 1:
                    time.perf_counter = real
                    return names["t"] + 1e-7
                return real()

            time.perf_counter = once
            break
        frame = frame.f_back


def softmax(x):
    raise_flags()
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
