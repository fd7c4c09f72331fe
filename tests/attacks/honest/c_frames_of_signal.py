"""All frames are copied.

family: C
problem: frames_of_signal
expect: correct
device: cpu, cuda
"""


def frames_of_signal(x):
    return x.unfold(0, 8192, 1024).contiguous()
