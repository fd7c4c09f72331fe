"""Wait until a descriptor is readable.

`select.select` refuses descriptors from 1024 on, and a process that holds that many may start one
of ours or connect to it; `poll` takes any.
"""

import math
import select
from typing import Protocol


class HasDescriptor(Protocol):
    def fileno(self) -> int: ...


def is_readable(descriptor: int | HasDescriptor, within_s: float = 0.0) -> bool:
    """Tell whether the descriptor is readable, or closed by its peer, within these seconds.

    A pidfd is readable once its process has ended. `math.inf` waits without a limit.
    """
    # Rounded up: a wait below a millisecond would return at once, and its caller would spin.
    wait_ms = None if within_s == math.inf else max(math.ceil(within_s * 1000), 0)
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(wait_ms))
