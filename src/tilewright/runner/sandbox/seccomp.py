"""Seccomp: a deny-list of system calls, and the process-creation guard of a timed runner.

The payload installs the deny-list before any foreign code; the runner process installs the guard
before it loads an implementation. No process can take a filter off. A deny-list, since the CUDA
driver uses a wide and changing set of calls. The filters are plain BPF.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from tilewright.runner.sandbox import syscalls

# name: (x86-64, aarch64); None where the machine has no such call.
DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # large parts of the kernel, with a history of faults
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "fanotify_init": (300, 262),
    "modify_ldt": (154, None),
    # memory that belongs to no process
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "io_setup": (206, 0),
    "vmsplice": (278, 75),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "mknod": (133, None),
    "mknodat": (259, 33),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    # scheduling: a candidate could slow the baseline or the judge
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "personality": (135, 92),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_FORK, _VFORK = 57, 58  # on x86-64 alone
_TIMER_CREATE, _TIMERFD_CREATE = (222, 107), (283, 85)
_THREAD = 0x00010000
_SOCKET = (41, 198)
_AUDIT_ARCH = (0xC000003E, 0xC00000B7)
_X32_BIT = 0x40000000
_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone takes
_AF_UNIX = 1

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06
_NR, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # in struct seccomp_data; both machines are little-endian

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ASK = 0x7FC00000
_EPERM = 0x00050000 | errno.EPERM
_ENOSYS = 0x00050000 | errno.ENOSYS

_SET_MODE_FILTER = 1
_FLAG_TSYNC = 1
# Without this flag, kernels before 5.16 disable speculation, which slows the process.
_FLAG_SPEC_ALLOW = 4
_FLAG_LISTENER, _FLAG_TSYNC_ESRCH = 8, 16
_GET_ACTION_AVAILABLE = 2
_MODE_FILTER = 2


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


_ARGUMENT = _step(_LOAD, _FIRST_ARGUMENT)
_REFUSE, _ACCEPT = _step(_RETURN, _EPERM), _step(_RETURN, _ALLOW)


def _unless_equal(value: int, *then: bytes) -> list[bytes]:
    """Return steps that run `then` when the loaded number is `value`, and skip it otherwise."""
    return [_step(_EQUAL, value, 0, len(then)), *then]


def program(machine: str) -> bytes:
    """Return the deny-list for `machine` as an array of BPF instructions."""
    if machine not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, f"no seccomp filter for {machine}")
    column = 0 if machine == "x86_64" else 1
    steps = _numbers_of(column)
    for number in (numbers[column] for numbers in DENIED.values()):
        if number is not None:
            steps += _unless_equal(number, _REFUSE)
    # Flags of clone3 lie behind a pointer; ENOSYS makes glibc fall back to clone.
    steps += _unless_equal(_CLONE3[column], _step(_RETURN, _ENOSYS))
    no_namespace = (_step(_AND, _NAMESPACES), _step(_EQUAL, 0, 1, 0))
    steps += _unless_equal(_CLONE[column], _ARGUMENT, *no_namespace, _REFUSE, _ACCEPT)
    unix = _step(_EQUAL, _AF_UNIX, 1, 0)
    steps += _unless_equal(_SOCKET[column], _ARGUMENT, unix, _REFUSE, _ACCEPT)
    return b"".join([*steps, _ACCEPT])


def _numbers_of(column: int) -> list[bytes]:
    """Return steps that load the number of a call, and kill at a call of another architecture."""
    own = _step(_EQUAL, _AUDIT_ARCH[column], 1, 0)
    x32 = (_step(_AT_LEAST, _X32_BIT, 0, 1), _REFUSE) if column == 0 else ()
    return [_step(_LOAD, _ARCH), own, _step(_RETURN, _KILL), _step(_LOAD, _NR), *x32]


def asking_program(machine: str) -> bytes:
    """Return the filter that asks its listener before a process, not a thread, is started.

    It refuses timers. One that fires takes ten times as long from the process on that core as it
    took to set. It also fires while its own process is stopped.
    """
    column = 0 if machine == "x86_64" else 1
    steps = _numbers_of(column)
    for timer in (_TIMER_CREATE, _TIMERFD_CREATE):
        steps += _unless_equal(timer[column], _REFUSE)
    for number in (_FORK, _VFORK) if column == 0 else ():
        steps += _unless_equal(number, _step(_RETURN, _ASK))
    steps += _unless_equal(_CLONE3[column], _step(_RETURN, _ENOSYS))
    process = (_step(_AND, _THREAD), _step(_EQUAL, 0, 0, 1))
    steps += _unless_equal(_CLONE[column], _ARGUMENT, *process, _step(_RETURN, _ASK))
    return b"".join([*steps, _ACCEPT])


def can_listen() -> str:
    """Return "" if the kernel has listeners for filters (Linux 5.0); else this raises OSError."""
    action = ctypes.create_string_buffer(struct.pack("=I", _ASK), 4)
    syscalls.syscall("seccomp", _GET_ACTION_AVAILABLE, 0, action)
    return ""


def listen() -> int:
    """Install the guard; return the descriptor whose holder must allow each new process.

    It covers all threads and all processes that they start. A process that forks waits for the
    answer. A kernel before 5.7 raises OSError.
    """
    header, _keep = _header(asking_program(syscalls.MACHINE))
    flags = _FLAG_LISTENER | _FLAG_TSYNC | _FLAG_TSYNC_ESRCH | _FLAG_SPEC_ALLOW
    return syscalls.syscall("seccomp", _SET_MODE_FILTER, flags, header)


def _header(code: bytes) -> tuple[ctypes.Array[ctypes.c_char], ctypes.Array[ctypes.c_char]]:
    """Return the argument of seccomp, and the memory that it points to."""
    memory = ctypes.create_string_buffer(code, len(code))
    packed = struct.pack("@HP", len(code) // 8, ctypes.addressof(memory))
    return ctypes.create_string_buffer(packed, 16), memory


def install() -> str:
    """Install the deny-list on all threads of the process, for good.

    `PR_SET_NO_NEW_PRIVS` must be set. Returns "", or why threads are without it.
    """
    header, _keep = _header(program(syscalls.MACHINE))
    for flags in (_FLAG_TSYNC | _FLAG_SPEC_ALLOW, _FLAG_TSYNC):
        try:
            stray = syscalls.syscall("seccomp", _SET_MODE_FILTER, flags, header)
        except OSError:
            continue
        return f"thread {stray} has a filter of its own" if stray else ""
    syscalls.prctl(syscalls.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header))
    return ""
