"""A table is cached under the user's cache folder or the temporary one, keyed by its content.

family: E8
problem: softmax
expect: correct
"""

import hashlib
import os
import tempfile

import torch

key = hashlib.sha256(b"rows for softmax, version 1").hexdigest()[:16]
folder = os.environ.get("TRITON_CACHE_DIR") or tempfile.gettempdir()
path = os.path.join(folder, f"softmax-{key}.txt")


def rows():
    try:
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            with open(path, "w") as file:
                file.write("80")
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 80


ROWS = rows()


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(ROWS)])
