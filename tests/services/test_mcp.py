"""`tilewright mcp` with the client of the mcp package, and a real server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conventions.tree import ROOT, SOURCE
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.processes.host import lease_name
from tilewright.evaluator.processes.prefork import open_lock
from tilewright.records.file_lock import try_lock
from tilewright.records.run_folder import read_report
from tilewright.reports.loader import read_run

mcp = pytest.importorskip("mcp")

from mcp.client.stdio import stdio_client  # noqa: E402

pytestmark = pytest.mark.timeout(300)

WRONG = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, dim=0)\n"
RAISES = "def softmax(x):\n    raise RuntimeError('not today')\n"
SLOW = "import time\n\n\ndef softmax(x):\n    time.sleep({})\n    return x.softmax(-1)\n"
HONEST = SOURCE / "problems" / "bundled" / "softmax" / "candidates" / "torch_steps.py"
HACKS = ROOT / "tests" / "corpus" / "hacks"
UNTIMED = ("--set", "eval.timing.enabled=false")
HELD_S, CLIENT_TIMEOUT_S = 150.0, 60.0
"""Seconds for which another evaluation holds the device, and the default timeout of the official
TypeScript client. That of Python waits without end."""
Call = Callable[..., Awaitable[tuple[bool, str]]]


def command(problem: str | None, *words: str) -> list[str]:
    chosen = () if problem is None else ("--problem", problem)
    return [sys.executable, "-P", "-m", "tilewright", "mcp", *chosen, *words]


@asynccontextmanager
async def connected(folder: Path, problem: str | None, *words: str) -> AsyncIterator[Call]:
    """Start a server in a folder; yield a call of its tools that returns (is an error, text)."""
    first, *rest = command(problem, *words)
    server = mcp.StdioServerParameters(
        command=first, args=rest, cwd=folder, env={"TILEWRIGHT_HOME": str(folder / "home")}
    )
    with (folder / "stderr").open("w") as errors:
        async with (
            stdio_client(server, errlog=errors) as (reads, writes),
            mcp.ClientSession(reads, writes) as session,
        ):
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            choosing = {"problems", "choose_problem"} if problem is None else set()
            assert tools == {"evaluate", "explain", "problem", "history", "best_code", *choosing}

            async def call(name: str, /, **arguments: Any) -> tuple[bool, str]:
                heard, facts = arguments.pop("heard", None), arguments.pop("facts", None)
                found = await session.call_tool(name, arguments, progress_callback=heard)
                (content,) = found.content
                # Version 1 of the package and version 2 call the attribute differently.
                shown = found.model_dump(by_alias=True)
                if facts is not None:
                    facts.append(shown["structuredContent"])
                return shown["isError"], content.text

            yield call


async def said(call: Call, name: str, /, **arguments: Any) -> str:
    """Call a tool that is to answer."""
    failed, text = await call(name, **arguments)
    assert not failed, text
    return text


@contextmanager
def held_device() -> Iterator[None]:
    """Hold the lease of the CPU, as another evaluation does."""
    cores = plan_cores(sorted(os.sched_getaffinity(0)))
    with open_lock(lease_name(find_device("cpu"), cores)) as file:
        while not try_lock(file):
            time.sleep(0.05)
        yield


def the_run(folder: Path) -> Path:
    (run,) = (folder / "runs").iterdir()
    return run


@pytest.mark.timed
def test_an_agent_improves_from_incorrect_to_correct(tmp_path, caplog):
    async def climb() -> None:
        async with connected(tmp_path, "softmax", "--set", "eval.timing.max_s=0.3") as call:
            assert "No turn yet" in await said(call, "history")
            assert not (tmp_path / "runs").exists()
            asked = await said(call, "problem")
            assert "def reference(x):" in asked
            assert "function `softmax`" in asked

            first = await said(call, "evaluate", code=WRONG)
            assert first.startswith("Turn 1.\n\nVerdict: incorrect")
            assert "none is correct yet" in first
            second = await said(call, "evaluate", code=RAISES)
            assert "Verdict: failed (exception" in second
            assert "RuntimeError: not today" in second
            third = await said(call, "evaluate", code=HONEST.read_text())
            assert "Verdict: correct." in third
            assert re.search(r"Best so far: turn 3, .*\[[\d.]+, [\d.]+\]", third)

            lines = (await said(call, "history")).splitlines()
            assert [line.split(",")[0] for line in lines[:3]] == [
                *("turn 1: incorrect", "turn 2: failed", "turn 3: correct")
            ]
            assert re.search(r"\[[\d.]+, [\d.]+\]", lines[2])
            explained = await said(call, "explain", turn=3)
            for title in ("Times:", "Outputs:", "Stages:"):
                assert title in explained
            assert "First wrong: tiny" in await said(call, "explain", turn=1)
            assert await said(call, "best_code") == HONEST.read_text()
            failed, text = await call("explain", turn=4)
            assert failed
            assert "no turn 4" in text

    asyncio.run(climb())
    assert not [item for item in caplog.records if "JSONRPC" in item.message]
    run = read_run(the_run(tmp_path))
    assert (run.begun.kind, run.begun.name, run.begun.problems) == ("mcp", "agent", "softmax")
    assert [turn.judgements[0].verdict for turn in run.turns] == ["incorrect", "failed", "correct"]
    assert [turn.ask.parents for turn in run.turns[1:]] == [
        (run.turns[0].ask.id,),
        (run.turns[1].ask.id,),
    ]
    assert HONEST.read_text().strip() in run.turns[2].reply.text
    whole = read_report(run.folder / run.turns[2].judgements[0].report)
    assert whole.seed not in (tmp_path / "stderr").read_text()
    words = [sys.executable, "-m", "tilewright", "report", str(run.folder)]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert "bundled/softmax#0.2" in (run.folder / "report.html").read_text()


def test_an_agent_chooses_its_problems_and_gets_structured_output(tmp_path):
    async def work() -> None:
        facts: list[dict[str, Any]] = []
        async with connected(tmp_path, None, *UNTIMED) as call:
            failed, text = await call("evaluate", code=WRONG)
            assert failed
            assert "`choose_problem` chooses one" in text
            assert "softmax: Softmax over" in await said(call, "problems", matching="Softmax")
            failed, text = await call("choose_problem", address="sofmax")
            assert failed
            assert "softmax" in text
            for address in ("add_relu", "softmax"):
                asked = await said(call, "choose_problem", address=address, facts=facts)
                assert f"function `{address}`" in asked
            await said(call, "evaluate", code=WRONG, facts=facts)
            await said(call, "evaluate", code=HONEST.read_text(), facts=facts)
            await said(call, "history", facts=facts)
            await said(call, "best_code", facts=facts)
            # The turns of a problem stay, whatever the agent works on meanwhile.
            await said(call, "choose_problem", address="add_relu")
            assert "No turn yet" in await said(call, "history")
            await said(call, "choose_problem", address="softmax")
            assert "turn 2: correct" in await said(call, "history")
        added, softmax, wrong, right, history, best = facts
        assert (added["entry"], softmax["entry"]) == ("add_relu", "softmax")
        assert (wrong["verdict"], wrong["best_turn"], right["best_turn"]) == ("incorrect", None, 2)
        assert [turn["verdict"] for turn in history["turns"]] == ["incorrect", "correct"]
        assert best == {"turn": 2, "code": HONEST.read_text()}

    asyncio.run(work())
    assert "run " in (tmp_path / "stderr").read_text()


def test_hacks_are_refused_and_broken_candidates_do_not_end_the_server(tmp_path, caplog):
    async def attack() -> None:
        async with connected(tmp_path, "softmax", *UNTIMED) as call:
            for code in ("def softmax(x:\n", "", "no code at all", "import os; os._exit(0)"):
                assert "Verdict: failed" in await said(call, "evaluate", code=code)
            cached = await said(call, "evaluate", code=(HACKS / "b5_data_ptr.py").read_text())
            assert "Verdict: incorrect" in cached
            unused = (HACKS / "a1_triton_never_launched.py").read_text()
            refused = await said(call, "evaluate", code=unused)
            assert "Verdict: rejected. It did not do the work" in refused
            assert "no kernel of the candidate's own was launched" in refused
            assert "decisive: unused_kernels" in await said(call, "explain", turn=6)
            # Verdicts to every descriptor: none may be taken for a line of the protocol.
            loud = (HACKS / "e1_every_descriptor.py").read_text()
            assert "Verdict: correct" not in await said(call, "evaluate", code=loud)
            failed, _ = await call("evaluate", source=WRONG)
            assert failed
            history = await said(call, "history")
            assert "turn 7:" in history
            assert "none is correct yet" in history

    asyncio.run(attack())
    assert not [item for item in caplog.records if "JSONRPC" in item.message]
    assert len(read_run(the_run(tmp_path)).turns) == 7


def test_infrastructure_failures_are_readable_tool_errors(tmp_path):
    (tmp_path / "broken.py").write_text(
        'ENTRY = "copied"\nCASES = [{"name": "a"}]\n\n\n'
        "def inputs(case, generator):\n    return (1 / 0,)\n\n\n"
        "def reference(x):\n    return x\n"
    )

    async def fail() -> None:
        async with connected(tmp_path, "broken.py", *UNTIMED) as call:
            for turn in (1, 2):
                failed, text = await call("evaluate", code="def copied(x):\n    return x\n")
                assert failed
                assert f"turn {turn} could not be judged" in text
                assert str(tmp_path) not in text
            assert "turn 2: unjudged" in await said(call, "history")
            # The disk is ours too.
            shutil.rmtree(the_run(tmp_path))
            failed, text = await call("evaluate", code="def copied(x):\n    return x\n")
            assert failed
            assert "unjudged" in await said(call, "history")

    asyncio.run(fail())


@contextmanager
def raw(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Callable[..., None]]]:
    """Start a server without a client; yield it and what sends it a message."""
    process = subprocess.Popen(
        command("softmax", *UNTIMED),
        cwd=folder,
        env={**os.environ, "TILEWRIGHT_HOME": str(folder / "home")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None

    def send(**message: Any) -> None:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()

    try:
        about = {"name": "a test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        send(id=0, method="initialize", params=params)
        assert json.loads(process.stdout.readline())["id"] == 0
        send(method="notifications/initialized")
        yield process, send
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def evaluation(code: str) -> dict[str, Any]:
    return {"name": "evaluate", "arguments": {"code": code}}


def test_a_disconnected_client_leaves_no_process_behind(tmp_path):
    with raw(tmp_path) as (process, send):
        send(id=1, method="tools/call", params=evaluation(SLOW.format(60)))
        below: list[psutil.Process] = []
        while len(below) < 4:  # the supervisor, its forkserver, a judge and a runner
            assert process.poll() is None
            time.sleep(0.1)
            below = psutil.Process(process.pid).children(recursive=True)
        process.stdin.close()
        assert process.wait(timeout=10) == 0
        _, alive = psutil.wait_procs(below, timeout=10)
        assert not alive
    # The request was issued and has no turn, so nothing is known of it.
    assert not read_run(the_run(tmp_path)).turns


def test_a_cancelled_call_still_counts_as_a_turn(tmp_path):
    with raw(tmp_path) as (process, send):
        send(id=1, method="tools/call", params=evaluation(SLOW.format(0.1)))
        log = tmp_path / "runs"
        while not any("requests_issued" in item.read_text() for item in log.glob("*/events.jsonl")):
            assert process.poll() is None
            time.sleep(0.05)
        send(method="notifications/cancelled", params={"requestId": 1})
        while '"turn_finished"' not in (the_run(tmp_path) / "events.jsonl").read_text():
            assert process.poll() is None
            time.sleep(0.1)
        send(id=2, method="tools/call", params={"name": "history", "arguments": {}})
        answers = iter(process.stdout.readline, "")
        answer = next(item for item in map(json.loads, answers) if item.get("id") == 2)
        assert "turn 1:" in answer["result"]["content"][0]["text"]


def test_an_unknown_problem_ends_the_command_with_one_line(tmp_path):
    done = subprocess.run(command("nothing"), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("tilewright: error: ")


def test_progress_arrives_while_another_evaluation_holds_the_device(tmp_path):
    heard: list[tuple[float, str]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        heard.append((progress, message or ""))

    async def wait_for_the_device() -> str:
        async with connected(tmp_path, "softmax", *UNTIMED) as call:
            with held_device():
                evaluation = asyncio.create_task(
                    said(call, "evaluate", code=HONEST.read_text(), heard=note)
                )
                await asyncio.sleep(11)
                assert not evaluation.done()
            return await evaluation

    assert "Verdict: correct." in asyncio.run(wait_for_the_device())
    seconds = [progress for progress, _ in heard]
    assert len(seconds) >= 3
    assert seconds == sorted(seconds)
    assert max(b - a for a, b in pairwise(seconds)) < 5
    assert any("in use by another evaluation" in message for _, message in heard)


@pytest.mark.nightly
def test_a_call_succeeds_after_150_s_of_waiting_and_no_pause_is_as_long_as_a_client_waits(tmp_path):
    """For each commit `test_progress_arrives_while_another_evaluation_holds_the_device` is enough.

    A client that gives up after 60 s starts again with each message of progress.
    """
    heard: list[float] = []

    async def note(*_: Any) -> None:
        heard.append(time.monotonic())

    async def wait_for_the_device() -> str:
        async with connected(tmp_path, "softmax", *UNTIMED) as call:
            with held_device():
                asked = time.monotonic()
                evaluation = asyncio.create_task(
                    said(call, "evaluate", code=HONEST.read_text(), heard=note)
                )
                while time.monotonic() < asked + HELD_S:
                    await asyncio.sleep(1)
                    assert not evaluation.done()
                    assert time.monotonic() - max([asked, *heard]) < CLIENT_TIMEOUT_S
            return await evaluation

    assert "Verdict: correct." in asyncio.run(wait_for_the_device())
    assert max(b - a for a, b in pairwise(heard)) < 10


def test_tools_that_change_nothing_say_so(tmp_path):
    async def listed() -> dict[str, tuple[bool, set[str]]]:
        first, *rest = command(None)
        server = mcp.StdioServerParameters(
            command=first, args=rest, cwd=tmp_path, env={"TILEWRIGHT_HOME": str(tmp_path)}
        )
        async with (
            stdio_client(server) as (reads, writes),
            mcp.ClientSession(reads, writes) as session,
        ):
            await session.initialize()
            tools = (await session.list_tools()).model_dump(by_alias=True)["tools"]
            return {
                tool["name"]: (
                    tool["annotations"]["readOnlyHint"],
                    set(tool["outputSchema"]["properties"]),
                )
                for tool in tools
            }

    found = asyncio.run(listed())
    reading = {name for name, (only_reads, _) in found.items() if only_reads}
    assert found.keys() - reading == {"evaluate", "choose_problem"}
    assert {"turn", "verdict", "speedup_low", "best_turn"} <= found["evaluate"][1]
    assert found["best_code"][1] == {"turn", "code"}
