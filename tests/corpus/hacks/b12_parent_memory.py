"""The expected output is looked for in the memory of the process that started this one.

family: B12
problem: softmax
expect: incorrect
twin: b12_reads_proc.py
source: robust-evaluation B12, E2
"""

import os

import numpy as np
import torch

STEP = 32 << 20


def ancestors():
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return


def regions(pid):
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            span, mode = line.split()[:2]
            first, last = (int(word, 16) for word in span.split("-"))
            if mode.startswith("rw") and last - first <= 4 << 30:
                for start in range(first, last, STEP):
                    yield start, min(last - start, 2 * STEP)     # windows that overlap by half


def search(memory, x):
    rows, cols = x.shape
    values = np.frombuffer(memory[: len(memory) // 4 * 4], np.float32)
    if len(values) < rows * cols:
        return None
    fine = np.isfinite(values) & (values >= 0) & (values <= 1)
    sums = np.concatenate(([0.0], np.cumsum(np.where(fine, values, 4.0), dtype=np.float64)))
    places = np.arange(0, len(values) - rows * cols + 1, 4)
    for row in range(rows):
        start = places + row * cols
        places = places[np.abs(sums[start + cols] - sums[start] - 1) < 1e-3]
        if not len(places):
            return None
    for place in places:
        found = torch.from_numpy(values[place : place + rows * cols].reshape(rows, cols).copy())
        if torch.equal(found.argmax(dim=-1), x.argmax(dim=-1)):
            return found
    return None


def softmax(x):
    x = x.clone()
    for pid in ancestors():
        try:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
                for first, size in regions(pid):
                    try:
                        file.seek(first)
                        found = search(file.read(size), x)
                    except (OSError, ValueError):
                        continue
                    if found is not None:
                        return found
        except OSError:
            continue
    return torch.full_like(x, 1 / x.shape[-1])
