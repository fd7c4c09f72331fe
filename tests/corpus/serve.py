"""Serves on loopback what the A9 hacks try to fetch: an answer, and a package index with a wheel.

Run `python tests/corpus/serve.py`, then a hack in an evaluator without a wall: it succeeds.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

PORT = 48765
ANSWER = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, dim=-1)\n"
WHEEL = "fastsoftmax-1.0-py3-none-any.whl"


def wheel() -> bytes:
    """Return the bytes of a pure Python wheel whose package is `ANSWER`."""
    info = "fastsoftmax-1.0.dist-info"
    files = {
        "fastsoftmax/__init__.py": ANSWER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: fastsoftmax\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(text)}\n")
    files[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


class Handler(BaseHTTPRequestHandler):
    """Answers with the index, the wheel or the answer's source."""

    pages = {  # noqa: RUF012
        "/": (f'<a href="{WHEEL}">{WHEEL}</a>'.encode(), "text/html"),
        "/answer.py": (ANSWER.encode(), "text/plain"),
        f"/{WHEEL}": (wheel(), "application/octet-stream"),
    }

    def do_GET(self) -> None:
        """Serve one of `pages`."""
        body, kind = self.pages.get(self.path, (b"", "text/plain"))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Be quiet."""


def server() -> HTTPServer:
    """Return a server bound to loopback, not yet serving."""
    return HTTPServer(("127.0.0.1", PORT), Handler)


if __name__ == "__main__":
    server().serve_forever()
