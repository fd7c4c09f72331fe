"""A profiler and a tracer are installed for every thread.

problem: add_relu
expect: correct
"""

import sys
import threading

import torch


def note(frame, event, arg):
    return None


sys.setprofile(note)
threading.setprofile(note)


def add_relu(x, y):
    return torch.relu(x + y)
