"""Kernels of a reference that Triton compiles in the judge: that takes no time of the device.

So the judge says when it compiles, and the supervisor may give the device to others meanwhile.
"""

from __future__ import annotations

import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from tilewright.evaluator.judge_client.gpu_messages import COMPILED, COMPILING, RESUME
from tilewright.wire.frames import Channel, Frame


class AnnouncedCompilation:
    """The judge's channel, with frames around each compilation. Lifetime: the process.

    `settle` waits until the device has done what the judge gave it.
    """

    def __init__(self, channel: Channel, settle: Callable[[], object]) -> None:
        self._channel, self._settle = channel, settle
        self._requests = select.poll()
        self._requests.register(channel, select.POLLIN | select.POLLHUP)
        self._early = deque[Frame]()
        """Requests that arrived before the permission to use the device again."""
        self._answering = False
        self._announces = False
        self._one = threading.Lock()

    def receive(self) -> Frame:
        """Return the next request of the supervisor."""
        self._answering = False
        frame = self._early.popleft() if self._early else self._channel.receive()
        self._answering = True
        return frame

    def has_request(self) -> bool:
        """Tell whether the next request waits already."""
        return bool(self._early or self._requests.poll(0))

    def announce(self, compiler: Any) -> None:  # noqa: ANN401 - the module `triton.compiler`
        """Announce each compilation by Triton from now on; calls after the first change nothing.

        A judge loads its problem again for each candidate.
        """
        if self._announces:
            return
        self._announces = True
        compile_kernel: Callable[..., Any] = compiler.compile

        def announced(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            # Torch makes the backward pass in a thread of its own; the main thread waits for it.
            # A thread that goes on after the answer has no supervisor that listens.
            if not self._answering:
                return compile_kernel(*args, **kwargs)
            with self._one:
                # The judge's launches must have ended before others use the device.
                self._settle()
                self._channel.send(COMPILING)
                try:
                    return compile_kernel(*args, **kwargs)
                finally:
                    self._channel.send(COMPILED)
                    self._wait()

        compiler.compile = announced

    def _wait(self) -> None:
        while (frame := self._channel.receive()).kind != RESUME:
            self._early.append(frame)
