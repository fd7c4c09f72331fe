"""Tools for coding agents over standard input and output, by the Model Context Protocol.

The official `mcp` package speaks the protocol. Versions 1 and 2 call its server by two names and
agree in what is used of it here.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from tilewright._version import __version__
from tilewright.errors import ConfigError, InfrastructureError, TilewrightError, boundary
from tilewright.serve.agent_session import AgentRun

__all__ = ["NAME", "Sdk", "load_sdk", "serve"]

NAME = "tilewright"
"""What clients call the server."""
INSTRUCTIONS = """\
tilewright judges GPU kernels. Here it judges answers to one problem, for which a fast \
implementation is wanted. Call `problem` first. Then write a candidate and send the whole file to \
`evaluate`, read what it says, and send a better one. `explain` says more of a turn, `history` \
lists all of them. Only what `evaluate` says counts; it is computed by processes that never ran \
your code. A call takes from seconds to some minutes, and one is judged at a time."""


@dataclass(frozen=True)
class Sdk:
    """What is used of the `mcp` package."""

    make: Callable[..., Any]
    failure: type[Exception]
    """Raised by a tool, it is an answer that is marked as an error."""
    wire: Callable[[], Any]
    """Keeps the rest of this process, and its children, from writing into the protocol."""


def load_sdk() -> Sdk:
    """Import the `mcp` package.

    Raises:
        ConfigError: it is not installed.
    """
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("the package mcp is not installed; pip install 'tilewright[mcp]'")
    try:
        made = importlib.import_module("mcp.server.mcpserver")
        failures = importlib.import_module("mcp.server.mcpserver.exceptions")
    except ModuleNotFoundError:
        made = importlib.import_module("mcp.server.fastmcp")
        failures = importlib.import_module("mcp.server.fastmcp.exceptions")
        return Sdk(made.FastMCP, failures.ToolError, _own_wire)

    def make(name: str, **options: object) -> object:
        return made.MCPServer(name, version=__version__, **options)

    # Version 2 points standard output elsewhere by itself.
    return Sdk(make, failures.ToolError, nullcontext)


def serve(
    sdk: Sdk, run: AgentRun, *, stop: Callable[[], None], warn: Callable[[str], None]
) -> None:
    """Serve a run to the client at standard input and output, until that hangs up.

    Args:
        sdk: of `load_sdk`.
        run: what the tools work on.
        stop: ends an evaluation that is under way.
        warn: takes what whoever runs the server should see.
    """
    # One thread, and none of the event loop's: that would wait for it when the client hangs up.
    with ThreadPoolExecutor(1, "evaluate") as one_by_one:
        tools = _Tools(run, one_by_one, sdk.failure, warn)
        server = sdk.make(NAME, instructions=INSTRUCTIONS, log_level="WARNING")
        for tool in (tools.evaluate, tools.explain, tools.problem, tools.history):
            about = inspect.getdoc(tool)
            server.add_tool(tool, description=about, structured_output=False)
        try:
            with sdk.wire():
                server.run()
        finally:
            run.stop()
            stop()


class _Tools:
    """The tools, as the protocol's package wants them. Their docstrings are for agents."""

    def __init__(
        self,
        run: AgentRun,
        one_by_one: ThreadPoolExecutor,
        failure: type[Exception],
        warn: Callable[[str], None],
    ) -> None:
        self._run = run
        self._one_by_one = one_by_one
        self._failure = failure
        self._warn = warn

    async def evaluate(
        self, code: Annotated[str, Field(description="The whole source file of a candidate.")]
    ) -> str:
        """Judge a candidate: is it right, did it do the work itself, and how fast is it?

        Answers with the verdict, what explains it, the number of this turn and the best so far.
        Seconds to some minutes. Where the call is given up early, the turn is judged all the same
        and `history` shows it.
        """
        loop = asyncio.get_running_loop()
        with self._in_words("evaluate"):
            return await loop.run_in_executor(self._one_by_one, self._run.evaluate, code)

    async def explain(
        self, turn: Annotated[int, Field(description="Its number, as evaluate gave it.")]
    ) -> str:
        """Explain a turn at more length: outcome, times, outputs, findings, what limits it."""
        with self._in_words("explain"):
            return self._run.explain(turn)

    async def problem(self) -> str:
        """Show the problem: its reference, the rules, and what a candidate must define."""
        with self._in_words("problem"):
            return self._run.problem()

    async def history(self) -> str:
        """List all turns, a line each: verdict, and speed-up with its 95 % interval."""
        with self._in_words("history"):
            return self._run.history()

    @contextmanager
    def _in_words(self, tool: str) -> Iterator[None]:
        """Turn our own failures into errors of the tool; the client reads them, we go on."""
        try:
            with boundary(InfrastructureError, f"{tool} failed, which is our fault"):
                yield
        except TilewrightError as error:
            cause = error.__cause__
            more = "" if cause is None else "\n" + "".join(traceback.format_exception(cause))
            self._warn(f"{error}{more}".rstrip())
            raise self._failure(str(error)) from error


@contextmanager
def _own_wire() -> Iterator[None]:
    """Point descriptor 1 at standard error, and leave the client's end to `sys.stdout` alone."""
    sys.stdout.flush()
    before, kept = sys.stdout, os.dup(1)
    os.dup2(2, 1)
    try:
        with open(kept, "w", encoding="utf-8", closefd=False) as wire:
            sys.stdout = wire
            yield
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)
