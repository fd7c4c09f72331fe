"""Layout of the page of shared memory that starts a timed call and reports its end.

The places are counted in 8-byte words. The three flags lie on cache lines of their own, so that a
process that polls one flag does not slow down a write to another.
"""

from __future__ import annotations

__all__ = ["DONE", "GO", "OUTPUTS", "READY"]

GO = 0
"""The supervisor writes the number of the call here to start it."""
READY = 8
"""The runner writes the number of the call here once it waits for `GO`."""
DONE = 16
"""The runner writes the number of the call here once the call has returned."""
OUTPUTS = 64
"""The runner writes here where the outputs lie; see `runner.host_memory`."""
