"""OpenEnv 0.10.0: a real server and its clients, `openenv validate`, and the table cell by cell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from operator import gt
from pathlib import Path

import pytest

from tests.integrations.conftest import program, run
from tests.twelve_candidates import KINDS, SETTINGS, TWELVE, write_problems
from tilewright.integrations.packages import OPENENV, in_range, installed
from tilewright.integrations.verdict_table import HARNESSES, Ours

version = installed("openenv")
if version is None or not in_range(version, OPENENV):
    pytest.skip(f"not shown: openenv {version}", allow_module_level=True)

import psutil  # noqa: E402
import requests  # noqa: E402
from websockets.asyncio.client import connect  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402

from tilewright.integrations.openenv import KernelAction, KernelEnv, kernrl_view  # noqa: E402

pytestmark = pytest.mark.timeout(900)
SESSIONS = 32


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, psutil.Process]]:
    """Yield the address, the folder and the process of a running server."""
    folder = tmp_path_factory.mktemp("openenv")
    write_problems(folder / "problems")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = [word for item in SETTINGS for word in ("--set", item)]
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen(
            [
                *(program("tilewright"), "integrations", "run", "openenv", "--port", str(port)),
                *("--problems", folder / "problems", "--sessions", str(SESSIONS)),
                *("--turns", "100", *settings),
            ],
            cwd=folder,
            env={**os.environ, "TILEWRIGHT_HOME": str(folder / "home")},
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            requests.get(f"{url}/health", timeout=2)
            break
        except requests.ConnectionError:
            time.sleep(0.2)
    yield url, folder, psutil.Process(process.pid)
    process.terminate()
    process.wait(60)


def split(folder: Path) -> str:
    return str(folder / "problems")


def index_of(name: str) -> int:
    return sorted(KINDS).index(name)


def test_the_server_meets_the_runtime_level(server):
    text = run(program("openenv"), "validate", "--url", server[0])
    assert "FAIL" not in text


def test_each_of_twelve_candidates_gets_its_cell(server):
    url, folder, _ = server
    for kind in TWELVE:
        with KernelEnv(base_url=url).sync() as env:
            first = env.reset(split=split(folder), index=index_of(kind.name))
            assert kind.name in first.observation.prompt
            step = env.step(KernelAction(reply=kind.reply))
            seen, row = step.observation, Ours(step.observation.row)
            assert row in kind.rows, (kind.name, seen)
            assert env.state().verdict == seen.verdict
        match HARNESSES[row].reward:
            case "by rule":
                assert step.reward == pytest.approx(1 + min(max(seen.low, 0), 3))
                assert seen.low <= seen.speedup <= seen.high
            case "zero":
                assert (step.reward, seen.speedup, seen.low) == (0, None, None)
            case "none":
                assert (step.reward, seen.speedup) == (None, None)
        view = kernrl_view(seen)
        assert view["max_diff"] is None
        unjudged = row is Ours.UNJUDGED
        assert view["correctness_pass"] == (None if unjudged else seen.verdict == "correct")
        assert view["compilation_success"] == (None if unjudged else row is not Ours.FAILED_BUILD)
        assert not seen.report or Path(seen.report).is_file()
        assert (Path(seen.run) / "run.yaml").is_file()


def test_an_episode_is_a_run_folder_that_report_reads(server):
    url, folder, _ = server
    with KernelEnv(base_url=url).sync() as env:
        env.reset(split=split(folder), index=index_of("k_wrong"))
        run_folder = Path(env.step(KernelAction(source="x = 1")).observation.run)
        second = env.step(KernelAction(reply="no code"))
        assert (second.observation.verdict, second.observation.turn) == ("failed", 2)
    run(program("tilewright"), "report", run_folder)
    shown = json.loads((run_folder / "report.json").read_text())
    assert "k_wrong" in json.dumps(shown)


def test_the_task_routes_list_the_problems(server):
    url, folder, _ = server
    name = split(folder)
    assert [item["name"] for item in requests.get(f"{url}/tilewright/splits").json()] == [name]
    counted = requests.post(f"{url}/tilewright/num_tasks", json={"split": name}).json()
    assert counted == {"num_tasks": len(TWELVE)}
    one = requests.post(f"{url}/tilewright/task", json={"split": name, "index": 3}).json()
    assert one["task"]["index"] == 3
    outside = requests.post(f"{url}/tilewright/task", json={"split": name, "index": 99})
    assert outside.status_code == 400


def test_wrong_calls_are_named_and_disturb_no_other_session(server):
    url, folder, _ = server
    with KernelEnv(base_url=url).sync() as other:
        other.reset(split=split(folder), index=index_of("k_wrong"))
        with KernelEnv(base_url=url).sync() as env:
            with pytest.raises(RuntimeError, match="no episode: call reset"):
                env.step(KernelAction(source="x"))
            with pytest.raises(RuntimeError, match="no split 'nowhere' on this server"):
                env.reset(split="nowhere")
            with pytest.raises(RuntimeError, match="has 12 problems, no index 12"):
                env.reset(split=split(folder), index=12)
        # OpenEnv's client opens a new session instead of the closed one.
        with pytest.raises(RuntimeError, match="no episode: call reset"):
            env.step(KernelAction(source="x"))
        env.close()
        large = requests.post(f"{url}/step", data=b"x" * (20 << 20))
        assert (large.status_code, "larger than" in large.text) == (413, True)
        asyncio.run(_too_large_a_message(url))
        _half_a_frame(url)
        assert other.step(KernelAction(reply="no code")).observation.verdict == "failed"


async def _too_large_a_message(url: str) -> None:
    async with connect(f"ws{url.removeprefix('http')}/ws") as socket_:
        with contextlib.suppress(ConnectionClosed):
            await socket_.send("x" * (20 << 20))
        with pytest.raises(ConnectionClosed, match="1009"):
            await socket_.recv()


def _half_a_frame(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        plain.recv(1000)
        plain.sendall(b"\x81\xfe\x00")


def test_a_client_that_is_gone_within_a_step_frees_its_place(server):
    url, folder, _ = server

    async def leave() -> None:
        held = [await connect(f"ws{url.removeprefix('http')}/ws") for _ in range(SESSIONS)]
        for item in held:
            await item.send(json.dumps({"type": "state"}))
            await item.recv()
        data = {"split": split(folder), "index": index_of("k_endless")}
        await held[0].send(json.dumps({"type": "reset", "data": data}))
        await held[0].recv()
        reply = {"reply": KINDS["k_endless"].reply}
        await held[0].send(json.dumps({"type": "step", "data": reply}))
        await asyncio.sleep(0.5)
        held[0].transport.abort()
        since = time.monotonic()
        while True:
            # A full server says so and closes the connection.
            with contextlib.suppress(ConnectionClosed):
                async with connect(f"ws{url.removeprefix('http')}/ws") as new:
                    await new.send(json.dumps({"type": "state"}))
                    if json.loads(await new.recv())["type"] == "state":
                        break
            assert time.monotonic() - since < 10
            await asyncio.sleep(0.1)
        for item in held[1:]:
            await item.close()

    asyncio.run(leave())


def test_many_sessions_leave_nothing(server):
    url, folder, process = server

    async def session(number: int) -> int:
        async with connect(f"ws{url.removeprefix('http')}/ws") as one:
            data = {"split": split(folder), "index": number % len(TWELVE)}
            await one.send(json.dumps({"type": "reset", "data": data}))
            await one.recv()
            for turn in range(200):
                if turn and turn % 100 == 0:
                    await one.send(json.dumps({"type": "reset", "data": data}))
                    await one.recv()
                action = {"type": "step", "data": {"reply": "no code"}}
                await one.send(json.dumps(action))
                seen = json.loads(await one.recv())["data"]
                assert seen["observation"]["verdict"] == "failed", seen
        return 200

    async def all_sessions() -> int:
        return sum(await asyncio.gather(*(session(number) for number in range(SESSIONS))))

    with KernelEnv(base_url=url).sync() as env:
        env.reset(split=split(folder), index=index_of("k_wrong"))
        assert env.step(KernelAction(reply=KINDS["k_wrong"].reply)).reward == 0
    time.sleep(2)
    before = _traces(process)
    assert asyncio.run(all_sessions()) == SESSIONS * 200
    until = time.monotonic() + 20
    while any(map(gt, after := _traces(process), before)) and time.monotonic() < until:
        time.sleep(0.5)
    assert not any(map(gt, after, before)), (before, after)


def _traces(process: psutil.Process) -> tuple[int, int, int]:
    """Return the numbers of processes, of open files and of connections of a server."""
    children = [item for item in process.children(recursive=True) if item.is_running()]
    sockets = [item for item in process.net_connections() if item.status == "ESTABLISHED"]
    return len(children), len(process.open_files()), len(sockets)
