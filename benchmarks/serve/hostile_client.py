"""Bars: the server refuses a hostile client, logs that, and harms no other client.

A real server listens on every address, with tokens for two clients. One attacks with paths, bodies,
headers, floods, names of the other's tasks, references that attack the judge, and the hacks of the
corpus. Meanwhile the other submits honest candidates, and must get the right verdict for each.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.attacks.corpus_files import expectation_missed, read_corpus
from benchmarks.bars import ROOT, Bar, quick_settings
from benchmarks.serve import hostile_references as references
from tilewright.api import build_request
from tilewright.client import Client
from tilewright.serve.auth import make_token

CORPUS = ROOT / "tests" / "corpus" / "hacks"
HONEST_EVERY = 6
"""Hacks between two submissions of the honest client."""
GOOD = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)  # {}\n"
BODY_S, HEADERS_S = 3.0, 2.0
MANY = 40
LIMITS = (
    *(f"serve.body_timeout_s={BODY_S}", f"serve.header_timeout_s={HEADERS_S}", "serve.burst=400"),
    *("serve.requests_per_s=50", "eval.timing.enabled=false", "eval.limits.call_timeout_s=5"),
    *("eval.limits.load_s=10", "eval.limits.total_timeout_s=40"),
)


class Target:
    """A server with an honest and a hostile client. Lifetime: the attacks."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.tokens = {n: make_token(home / "serve", n, ("submit", "read")) for n in CLIENTS}
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = int(sock.getsockname()[1])
        self.log = home / "log.jsonl"
        settings = [item for limit in LIMITS for item in ("--set", limit)]
        command = [sys.executable, "-m", "tilewright", "serve", "--host", "0.0.0.0", "--port"]
        command += [str(self.port), "--set", f"serve.log={self.log}", *settings]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TILEWRIGHT_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        until = time.monotonic() + 60
        while not self.alive():
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError("the server did not start")
            time.sleep(0.1)

    def alive(self) -> bool:
        """Return whether the server answers within two seconds."""
        try:
            with urllib.request.urlopen(f"{self.url}/v1/health", timeout=2) as answer:
                return bool(json.load(answer)["status"] == "ok")
        except OSError:
            return False

    def client(self, name: str) -> Client:
        """Return a client with the token of that name."""
        return Client(self.url, token=self.tokens[name])

    def ask(
        self, path: str, body: object = None, *, client: str = "hostile", method: str | None = None
    ) -> tuple[int, str]:
        """Send one request; return the status and the text."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        headers["authorization"] = f"Bearer {self.tokens.get(client, client)}"
        made = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(made, timeout=400) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(errors="replace")

    def raw(self, head: bytes, *, wait_s: float = 10.0) -> bytes:
        """Send bytes as they are; return the answer until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait_s) as sock:
            found = b""
            try:
                sock.sendall(head)
                while more := sock.recv(65536):
                    found += more
            except OSError:
                pass
            return found

    def authorization(self) -> bytes:
        """Return the header of the hostile client."""
        credentials = base64.b64encode(f"x:{self.tokens['hostile']}".encode())
        return b"Authorization: Basic " + credentials + b"\r\n"

    def resident_mib(self) -> float:
        """Return the server's resident memory in MiB."""
        text = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        return int(text.split()[1]) * 4096 / (1 << 20)

    def stop(self) -> int:
        """End the server; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


CLIENTS = ("hostile", "honest")


def paths(target: Target) -> tuple[str, bool]:
    """Request files by ids that point outside of their folder."""
    wrong = []
    for item in (
        *("../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/serve/tokens.json", "%00"),
        *("..\\..\\tokens.json", "/etc/passwd", "tasks.db", "%c0%ae%c0%ae/", "a" * 30_000),
        *("'; DROP TABLE tasks; --", "%25%32%65", "{key}", "%ff%fe", "\u202e".encode().hex()),
    ):
        for path in (f"/v1/tasks/{item}", f"/v1/tasks/{item}/report", f"/results/{item}"):
            line = path.replace(" ", "%20").encode()
            head = b"GET " + line + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            answer = target.raw(head + target.authorization() + b"\r\n")
            status = answer[9:12]
            if status not in (b"400", b"404", b"405", b"414", b"422") or b"root:" in answer:
                wrong.append(f"{path[:40]}: {status!r}")
    return f"{len(wrong)} answered {wrong[:3]}" if wrong else "all refused", not wrong


def large(target: Target) -> tuple[str, bool]:
    """Send a gigabyte, with and without a declared length, with and without a token."""
    before, most = target.resident_mib(), 0
    statuses = []
    for declared in (True, False):
        for token in (target.authorization(), b""):
            sent, status = _gigabyte(target, token, declared=declared)
            most = max(most, sent)
            statuses.append(status)
    grown = target.resident_mib() - before
    right = all(status in ("413", "401", "closed") for status in statuses)
    seen = f"{', '.join(statuses)}; {most >> 20} MiB taken, {grown:+.0f} MiB kept"
    return seen, right and most < 256 << 20 and grown < 64 and "413" in statuses


def _gigabyte(target: Target, token: bytes, *, declared: bool) -> tuple[int, str]:
    length = b"Content-Length: 1073741824" if declared else b"Transfer-Encoding: chunked"
    head = b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    chunk, sent, status = b"x" * (1 << 20), 0, "closed"
    with socket.create_connection(("127.0.0.1", target.port), timeout=20) as sock:
        try:
            sock.sendall(head + token + length + b"\r\n\r\n")
            while sent < 1 << 30:
                sock.sendall(chunk if declared else b"100000\r\n" + chunk + b"\r\n")
                sent += len(chunk)
        except OSError:
            pass
        with contextlib.suppress(OSError):
            status = sock.recv(1024)[9:12].decode() or "closed"
    return sent, status


def slow(target: Target) -> tuple[str, bool]:
    """Hold many connections open with requests that never become complete."""
    body = b"POST /v1/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n"
    body += target.authorization() + b"\r\n{"
    heads = [body] * MANY + [b"GET /v1/health HTTP/1.1\r\nX: "] * MANY + [b""] * MANY
    socks = [socket.create_connection(("127.0.0.1", target.port)) for _ in heads]
    for sock, head in zip(socks, heads, strict=True):
        sock.sendall(head)
    start, answered = time.monotonic(), 0
    open_ = dict(enumerate(socks))
    while open_ and time.monotonic() - start < max(BODY_S, HEADERS_S) + 10:
        answered += target.alive()
        for number, sock in list(open_.items()):
            # A byte now and then, so that no timeout between bytes expires.
            try:
                if heads[number]:
                    sock.send(b"x")
                sock.setblocking(False)
                if sock.recv(1024) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                sock.setblocking(True)
            except OSError:
                open_.pop(number).close()
            else:
                sock.setblocking(True)
        time.sleep(0.3)
    took = time.monotonic() - start
    for sock in open_.values():
        sock.close()
    seen = (
        f"{len(heads) - len(open_)} of {len(heads)} closed in {took:.0f} s; other requests answered"
    )
    return seen, not open_ and answered >= 3


def headers(target: Target) -> tuple[str, bool]:
    """Send malformed request lines and headers."""
    get = b"GET /v1/tasks HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + target.authorization()
    post = get.replace(b"GET", b"POST")
    odd = {
        "100 KB": get + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
        "5000 headers": get + b"".join(b"X%d: y\r\n" % n for n in range(5000)) + b"\r\n",
        "no request": b"\x00\x01\x02\x03" * 100 + b"\r\n\r\n",
        "two lengths": post + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "length and chunks": post
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "negative length": post + b"Content-Length: -1\r\n\r\n",
        "line in a number": get + b"X-Request-Id: a\rb: c\r\n\r\n",
        "odd method": get.replace(b"GET", b"EVIL\x7f"),
        "long line": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        "no token": get.replace(target.authorization(), b"Authorization: Basic ====\r\n") + b"\r\n",
        "token of bytes": b"GET /v1/tasks HTTP/1.1\r\nConnection: close\r\nHost: a\r\n"
        b"Authorization: Bearer \xff\xfe\r\n\r\n",
    }
    wrong = []
    for name, text in odd.items():
        answer = target.raw(text)
        if (answer and not answer.startswith(b"HTTP/1.1 4")) or b"b: c" in answer:
            wrong.append(f"{name}: {answer[:40]!r}")
    return "; ".join(wrong) or f"{len(odd)} refused or closed", not wrong and target.alive()


def others(target: Target) -> tuple[str, bool]:
    """Try to read, follow and cancel a task of the other client by its key and name."""
    honest = target.client("honest")
    key = honest.submit(
        build_request(GOOD.format("mine"), "softmax", quick_settings()), name="mine"
    )
    codes = []
    for name in (key, "mine", key[:-1] + "0", key.upper()):
        codes += [target.ask(f"/v1/tasks/{name}{end}")[0] for end in ("", "/report", "/events")]
        codes += [target.ask(f"/v1/tasks/{name}", method="DELETE")[0]]
        codes += [target.ask(f"/{endpoint}/{name}")[0] for endpoint in ("status", "results")]
    listed = json.loads(target.ask("/v1/tasks?limit=500")[1])
    guesses = {target.ask("/v1/tasks", client=f"guess{n}")[0] for n in range(20)}
    admin = target.ask("/v1/queue")[1]
    right = set(codes) == {404} and guesses == {401} and "honest" not in admin
    right &= key not in {row["key"] for row in listed}
    right &= honest.report(key).verdict == "correct"
    return f"{len(codes)} times 404, {sorted(guesses)} for guessed tokens", right


def flood(target: Target) -> tuple[str, bool]:
    """Send far more requests than the rate limit allows."""
    codes = [target.ask("/v1/queue")[0] for _ in range(700)]
    mine = target.ask("/v1/queue", client="honest")[0]
    # The rate limit recovers before the next attack.
    time.sleep(5)
    return f"{codes.count(429)} of 700 times 429; the other client: {mine}", (
        429 in codes and set(codes) == {200, 429} and mine == 200
    )


def hostile_references(target: Target) -> tuple[str, bool]:
    """Submit references that attack the judge, and check the data that they report."""
    wrong = []
    for name, source in references.sources(target.port, target.home).items():
        fields = {"task_id": name.replace(" ", "-"), "reference_code": source, "backend": "torch"}
        fields["kernel_code"] = references.CANDIDATE
        start = time.monotonic()
        status, text = target.ask("/evaluate", fields)
        took = time.monotonic() - start
        error = json.loads(text).get("error_message") if status == 200 else text
        print(f"     reference {name:14} {status} {took:5.1f} s {str(error)[:100]!r}", flush=True)
        leaks = "SEEN:" in text and "SEEN:nothing" not in text
        leaks |= name == "endless" and "did not end within" not in text
        if status != 200 or leaks or '"correctness":true' in text or not target.alive():
            wrong.append(f"{name}: {status} {text[:200]}")
    return "; ".join(wrong) or "none read or harmed anything", not wrong


def corpus(target: Target) -> tuple[str, bool]:
    """Submit every hack of the corpus, with honest candidates in between."""
    hostile, honest, settings = target.client("hostile"), target.client("honest"), quick_settings()
    hacks, tasks, right = list(read_corpus(CORPUS)), [], []
    for number, file in enumerate(hacks):
        language = file.keys.get("language")
        request = build_request(file.path, file.problem(), settings, language=language)
        tasks.append((file, hostile.submit(request)))
        if number % HONEST_EVERY == 0:
            good = build_request(GOOD.format(number), "softmax", settings)
            right.append(honest.submit(good))
    missed = []
    for number, (file, key) in enumerate(tasks, start=1):
        deviation = expectation_missed(file, hostile.report(key))
        if number % 20 == 0:
            print(f"     {number} of {len(tasks)} hacks judged", flush=True)
        missed += [f"{file.path.name}: {deviation}"] if deviation else []
    missed += [
        f"honest {n}" for n, key in enumerate(right) if honest.report(key).verdict != "correct"
    ]
    seen = f"{len(hacks)} hacks with the verdict of their header, {len(right)} honest files correct"
    return "; ".join(missed) or seen, not missed and target.alive()


ATTACKS: dict[str, Callable[[Target], tuple[str, bool]]] = {
    "paths": paths,
    "large bodies": large,
    "slow requests": slow,
    "headers": headers,
    "others' work": others,
    "flood": flood,
    "references": hostile_references,
    "corpus": corpus,
}


def afterwards(target: Target, before_mib: float) -> tuple[str, bool]:
    """Check the server, its log and its store after the attacks."""
    rows: list[dict[str, Any]] = []
    for line in target.log.read_text(encoding="utf-8").splitlines():
        rows.append(json.loads(line))
    refused = [row for row in rows if row.get("status", 0) >= 400]
    codes = sorted({row["status"] for row in refused})
    named = any(row["client"] == "hostile" for row in refused)
    tokens = any(token in target.log.read_text() for token in target.tokens.values())
    alive, grown = target.alive(), target.resident_mib() - before_mib
    ended = target.stop()
    with sqlite3.connect(target.home / "serve" / "tasks.db") as store:
        whole = store.execute("PRAGMA integrity_check").fetchone()[0]
    seen = f"logged {codes}, {grown:+.0f} MiB, ended with {ended}, store {whole}"
    held = alive and named and not tokens and grown < 128 and ended == 0 and whole == "ok"
    return seen, held and {401, 404, 413} <= set(codes)


def run(only: str = "") -> list[Bar]:
    """Return the bars of the attacks whose name contains `only`."""
    bars = []
    with tempfile.TemporaryDirectory() as place:
        target = Target(Path(place) / "home")
        try:
            before = target.resident_mib()
            for name, attack in ATTACKS.items():
                if only not in name:
                    continue
                seen, held = attack(target)
                print(f"{'ok  ' if held else 'MISS'} {name}: {seen}", flush=True)
                bars.append(Bar(f"hostile client: {name}", "refused, no harm", seen, held))
            if not only:
                seen, held = afterwards(target, before)
                bars.append(Bar("hostile client: afterwards", "alive, logged", seen, held))
        finally:
            if target.process.poll() is None:
                target.stop()
    return bars
