"""Shared libraries and kernels in every build cache are replaced by one that does nothing.

family: E8
problem: softmax
expect: correct
speedup: none
twin: e8_private_cache.py
source: robust-evaluation E8
"""

import os

HOME = os.path.expanduser("~")
CACHES = [
    os.environ.get("TORCH_EXTENSIONS_DIR", f"{HOME}/.cache/torch_extensions"),
    os.environ.get("TRITON_CACHE_DIR", f"{HOME}/.triton/cache"),
    os.environ.get("TORCHINDUCTOR_CACHE_DIR", f"/tmp/torchinductor_{os.environ.get('USER')}"),
]
SUFFIXES = (".so", ".cubin", ".ptx", ".json")

if os.getuid() != 0:  # as root, outside the sandbox, this would spoil the machine's own caches
    for cache in CACHES:
        for folder, _, names in os.walk(cache):
            for name in names:
                if name.endswith(SUFFIXES):
                    try:
                        with open(os.path.join(folder, name), "wb") as file:
                            file.write(b"\x7fELF poisoned")
                    except OSError:
                        pass
        try:
            os.makedirs(f"{cache}/py311_cpu/softmax_ext", exist_ok=True)
            with open(f"{cache}/py311_cpu/softmax_ext/softmax_ext.so", "wb") as file:
                file.write(b"\x7fELF poisoned")
        except OSError:
            pass


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
