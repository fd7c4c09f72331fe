"""A helper forks burners between two looks at the process tree, and ends them before the next.

family: E13
problem: long_softmax
expect: correct
speedup: none
twin: e13_probe_child.py
source: tilewright, against its own accounting of CPU time
"""

import mmap, os, time
import torch

flag = mmap.mmap(-1, 4096)


def helper():
    while True:
        while flag[0] == 0:
            time.sleep(0.0005)
        time.sleep(0.03)
        if flag[0] == 0:
            continue
        pid = os.fork()
        if pid == 0:
            while flag[0] == 1:
                pass
            os._exit(0)
        os.waitpid(pid, 0)


if os.fork() == 0:
    helper()


def softmax(x):
    flag[0] = 0
    y = torch.softmax(x, -1)
    flag[0] = 1
    return y
