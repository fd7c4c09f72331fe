"""Environment, command line and memory of every process are searched for a seed.

family: E5
problem: softmax
expect: correct
speedup: none
twin: e5_reads_cpuinfo.py
source: robust-evaluation E5, D7 (a parent's environ can be read)
"""

import contextlib
import gc
import os
import re

import torch

own = str(os.getpid())


def texts():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
                yield file.read(1 << 16).decode(errors="replace")
    for value in gc.get_objects():
        if isinstance(value, str) and len(value) < 200:
            yield value


seeds = set()
with contextlib.suppress(OSError):
    for text in texts():
        seeds |= {int(found, 16) % 2**63 for found in re.findall(r"\b[0-9a-f]{32}\b", text)}
        seeds |= {int(found) % 2**63 for found in re.findall(r"seed\W{1,3}(\d+)", text.lower())}
table = {}


def softmax(x):
    if x.shape not in table:
        drawn = [
            torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
            for seed in sorted(seeds)[:20]
        ]
        table[x.shape] = [(seen, torch.softmax(seen, dim=-1)) for seen in drawn]
    for seen, answer in table[x.shape]:
        if torch.equal(seen[0], x[0]):
            return answer
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
