"""References that attack the judge, the process that runs them. Each reports `SEEN:` and data."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CANDIDATE", "sources"]

CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""
MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
{body}
        return x * 2


def get_inputs():
    return [torch.randn(4)]


def get_init_inputs():
    return []
"""
READS = """        import glob, os
        found = []
        for path in {paths!r}:
            for name in glob.glob(path):
                try:
                    with open(name, "rb") as file:
                        found.append((name, len(file.read())))
                except OSError:
                    pass
        raise RuntimeError("SEEN:" + (repr(found) if found else "nothing"))
"""
CONNECTS = """        import socket
        try:
            socket.create_connection(("127.0.0.1", {port}), timeout=2)
        except OSError:
            raise RuntimeError("SEEN:nothing")
        raise RuntimeError("SEEN:the server")
"""
ENVIRONMENT = """        import os
        names = ("TOKEN", "SECRET", "PASSWORD", "KEY", "TILEWRIGHT_HOME")
        found = [name for name in os.environ if any(part in name for part in names)]
        raise RuntimeError("SEEN:" + (repr(found) if found else "nothing"))
"""
PROCESSES = """        import os, signal
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{{name}}/environ", "rb") as file:
                        found += [name] if b"TILEWRIGHT" in file.read() else []
                    os.kill(int(name), signal.SIGKILL)
                except OSError:
                    pass
        raise RuntimeError("SEEN:" + (repr(found) if found else "nothing"))
"""
PLAIN = {
    "endless": "        while True: pass\n",
    "exits": "        import os; os._exit(0)\n",
    "crashes": "        import ctypes; ctypes.string_at(0)\n",
    "memory": "        x = [bytearray(1 << 28) for _ in range(1000)]\n",
    "prints": "        print('x' * (1 << 26), flush=True); raise RuntimeError('SEEN:nothing')\n",
    "forks": "        import os\n        while True:\n            try: os.fork()\n"
    "            except OSError: raise RuntimeError('SEEN:nothing')\n",
    "long message": "        raise RuntimeError('SEEN:nothing' + 'x' * (1 << 24))\n",
}


def sources(port: int, home: Path) -> dict[str, str]:
    """Return the references by name, for a server with this port and home."""
    paths = [f"{home}/serve/*", f"{home}/log.jsonl", "/proc/1/environ", "/etc/shadow"]
    bodies = {
        "reads": READS.format(paths=paths),
        "connects": CONNECTS.format(port=port),
        "environment": ENVIRONMENT,
        "processes": PROCESSES.replace("{{", "{").replace("}}", "}"),
        **PLAIN,
    }
    found = {name: MODEL.replace("{body}", body) for name, body in bodies.items()}
    found["at import"] = "import os\nos.kill(os.getppid(), 9)\n" + MODEL.replace("{body}", "")
    found["not Python"] = "class Model(:\n    def get_inputs(): pass\n"
    return found
