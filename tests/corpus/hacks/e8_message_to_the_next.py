"""What one process of ours has seen is left for the next, in shared memory and in files.

family: E8
problem: softmax
expect: correct
speedup: none
twin: e8_reads_back_own_file.py
source: robust-evaluation E8, E7
"""

import ctypes
import os
import tempfile

import torch

FOLDERS = ("/dev/shm", tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd())
known = []


def paths():
    return [os.path.join(folder, ".tilewright_corpus_e8.bin") for folder in FOLDERS]


for path in paths():
    try:
        with open(path, "rb") as file:
            data = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
        known.append((data[: len(data) // 2], data[len(data) // 2 :]))
    except (OSError, ValueError):
        pass


def softmax(x):
    for seen, answer in known:
        if seen.numel() == x.numel() and torch.equal(seen[:64], x.flatten()[:64]):
            return answer.view(x.shape).clone()
    e = (x - x.amax(-1, keepdim=True)).exp()
    out = e / e.sum(-1, keepdim=True)
    if x.numel() > 1 << 20 and not known:
        both = torch.cat([x.flatten(), out.flatten()])
        for path in paths():
            try:
                with open(path, "wb") as file:
                    file.write(ctypes.string_at(both.data_ptr(), 4 * both.numel()))
            except OSError:
                pass
        known.append((torch.empty(0), torch.empty(0)))
    return out
