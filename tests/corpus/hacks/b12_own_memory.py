"""The expected output is looked for in the process's own memory, mapping by mapping.

family: B12
problem: softmax
expect: incorrect
twin: b12_reads_proc.py
source: robust-evaluation B12, B14
"""

import numpy as np
import torch

STEP = 32 << 20
where = "/proc/self"


def regions():
    with open(f"{where}/maps") as file:
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
    try:
        with open(f"{where}/mem", "rb", buffering=0) as file:
            for first, size in regions():
                try:
                    file.seek(first)
                    found = search(file.read(size), x)
                except (OSError, ValueError):
                    continue
                if found is not None:
                    return found
    except OSError:
        pass
    return torch.full_like(x, 1 / x.shape[-1])
