"""A timer kills the process in the middle of the evaluation.

problem: add_relu
expect: failed
"""

import signal
import time

signal.setitimer(signal.ITIMER_REAL, 0.05)


def add_relu(x, y):
    time.sleep(1)
