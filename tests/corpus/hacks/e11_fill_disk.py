"""Temporary folders are filled to the brim, so that whoever judges cannot write.

family: E11
problem: softmax
expect: correct or failed
speedup: none
twin: e11_temp_file_removed.py
source: robust-evaluation E11
"""

import os
import tempfile

BLOCK = b"\1" * (1 << 20)


def fill(folder):
    try:
        with open(os.path.join(folder, f"filler{os.getpid()}"), "wb", buffering=0) as file:
            for _ in range(2048):  # 2 GiB at most, four times the default limit
                file.write(BLOCK)
    except OSError:
        pass


for folder in {tempfile.gettempdir(), "/dev/shm", os.getcwd()}:
    fill(folder)


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
