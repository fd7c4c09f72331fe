"""The reference is read from disk, near the working directory and the import path.

family: A5
problem: linear_scale
expect: failed
twin: a5_read_own_file.py
source: robust-evaluation A5, E5 (KernelBench-Hard)
"""

import os
import sys


def find():
    roots = [os.getcwd(), *sys.path, "/work", "/workspace", "/home", "/root", "/tmp"]
    for root in dict.fromkeys(path for path in roots if os.path.isdir(path)):
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name not in ("site-packages", ".git")]
            if folder.count("/") - root.count("/") >= 5:
                below[:] = []
            for name in names:
                if name.endswith(".py") and ("scale" in name or name == "reference.py"):
                    with open(os.path.join(folder, name), errors="replace") as file:
                        text = file.read()
                    if "class Model(" in text and "get_init_inputs" in text:
                        scope = {}
                        exec(text, scope)
                        return scope["Model"]
    raise LookupError("no reference on this disk")


class ModelNew(find()):
    pass
