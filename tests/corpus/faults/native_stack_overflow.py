"""Recursion through C frames until the stack ends; a newer Python notices, and prints.

problem: add_relu
expect: failed or incorrect
reason: crash
"""

import ctypes
import sys

sys.setrecursionlimit(10**9)
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


@Callback
def again(depth):
    return again(depth + 1)


def add_relu(x, y):
    return again(0)
