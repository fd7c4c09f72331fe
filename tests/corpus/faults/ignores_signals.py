"""Every signal that can be ignored is, and the call never ends.

problem: add_relu
expect: failed
reason: timeout
"""

import contextlib
import signal
import time

for number in signal.valid_signals():
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)


def add_relu(x, y):
    while True:
        time.sleep(1)
