"""It takes its time at first, until no variation of the inputs is begun any more, and is an identity.

family: B8
problem: relu_positive
expect: incorrect or failed
twin: b10_copy_when_positive.py
source: ours: a limit on the time for variations counted what the candidate itself took
"""

import gc
import time


def relu_positive(x):
    if gc.isenabled():
        time.sleep(2.2)
    return x.clone()
