"""A cluster address is checked for a Ray server before it is used."""

from __future__ import annotations

import socket
import threading

import pytest

from tilewright.errors import ConfigError
from tilewright.executors.ray_api import PREFACE, connect


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad request\r\n\r\n", b"\0\0"])
def test_a_listener_that_does_not_speak_ray_is_refused_soon(said):
    with socket.create_server(("127.0.0.1", 0)) as bound:

        def answer() -> None:
            opened, _ = bound.accept()
            with opened:
                assert opened.recv(100) == PREFACE
                opened.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = bound.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}: the program .* is not Ray"):
            connect(f"127.0.0.1:{port}")
        thread.join(5)
