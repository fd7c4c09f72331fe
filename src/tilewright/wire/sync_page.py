"""Layout of the sync page: shared memory that starts a timed call and reports its end.

The runner can write any value to any place at any time, so the supervisor reads each flag as a
claim. Places count units of 8 bytes; each flag has its own cache line, for quick writes.
"""

from __future__ import annotations

GO = 0
"""The supervisor writes the number of the call here to start it."""
READY = 8
"""The runner writes the number of the call here once it waits for `GO`."""
DONE = 16
"""The runner writes the number of the call here once the call has returned."""
PERMUTED = 24
"""The runner sets one bit here for each output that is not contiguous: it has the strides of the
reference's output."""
SHARES_CORE = 32
"""The supervisor writes one here if the runner has no core of its own. Then each of the two sleeps
while it waits: the scheduler may leave a core to a process that spins for many seconds."""
PAUSE_S = 5e-5
"""Seconds between two looks of a process that waits for another one on its own core."""
OUTPUTS = 64
"""First of the places where the runner writes the address of each output of the call."""
MAX_OUTPUTS = 64
"""Most tensors that a call may return: the bits of `PERMUTED`."""
