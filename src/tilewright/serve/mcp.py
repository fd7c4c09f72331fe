"""Tools for coding agents by the Model Context Protocol, over standard input and output.

Versions 1 and 2 of the package `mcp` differ in the name of the server class.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field, ValidationError

from tilewright._version import __version__
from tilewright.errors import (
    ConfigError,
    InfrastructureError,
    TilewrightError,
    boundary,
    suggestion,
)
from tilewright.records.base import Record
from tilewright.serve.agent_answers import (
    BestCode,
    EvaluatedTurn,
    History,
    ProblemFacts,
    ProblemList,
    ToolAnswer,
    TurnFacts,
)
from tilewright.serve.agent_problems import AgentProblems

PROGRESS_S = 3.0
"""Seconds between two notifications of progress. Clients give up after 60 s without an answer."""
NAME = "tilewright"
"""Name of the server for its clients."""
INSTRUCTIONS = """\
tilewright judges GPU kernels. Here it judges answers to one problem at a time, for which a fast \
implementation is needed. Call `problem` first; where there is a tool `choose_problem`, choose one \
before. Then write a candidate and send the whole file to `evaluate`, read the feedback, and send \
a better one. `explain` gives details of a turn, `history` \
lists all turns, and `best_code` returns the fastest correct file. Only the result of \
`evaluate` counts; processes that never ran your code compute it. A call takes from seconds to \
some minutes, and one runs at a time."""


@dataclass(frozen=True)
class Sdk:
    """The parts of the `mcp` package that this module uses."""

    make: Callable[..., Any]
    failure: type[Exception]
    """Exception of a tool that becomes an answer marked as an error."""
    context: type
    """Type of the argument by which a tool reports its progress."""
    annotations: Callable[[dict[str, Any]], Any]
    """Makes a tool's annotations of their fields."""
    answer: Any
    """The type of an answer with a text and structured output."""
    wire: Callable[[], Any]
    """Context in which only the protocol can write to standard output."""


def load_sdk() -> Sdk:
    """Import the `mcp` package; `ConfigError` if it is not installed."""
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("the package mcp is not installed; pip install 'tilewright[mcp]'")
    try:
        made = importlib.import_module("mcp.server.mcpserver")
    except ModuleNotFoundError:
        made = importlib.import_module("mcp.server.fastmcp")
    failure = importlib.import_module(f"{made.__name__}.exceptions").ToolError
    types = importlib.import_module("mcp.types")
    annotations, answer = types.ToolAnnotations.model_validate, types.CallToolResult
    if hasattr(made, "FastMCP"):
        server = _with_plain_errors(made.FastMCP, failure)
        return Sdk(server, failure, made.Context, annotations, answer, _own_wire)
    server = partial(_with_plain_errors(made.MCPServer, failure), version=__version__)
    # Version 2 redirects standard output itself.
    return Sdk(server, failure, made.Context, annotations, answer, nullcontext)


def _with_plain_errors(server: Any, failure: type[Exception]) -> Any:  # noqa: ANN401 - a class
    """Return a server class that names wrong arguments in words of ours, without a link."""

    class PlainErrors(server):  # type: ignore[misc] # the package is optional
        async def call_tool(self, name: str, arguments: Any, *more: Any, **options: Any) -> Any:  # noqa: ANN401
            listed = [tool.model_dump(by_alias=True) for tool in await self.list_tools()]
            takes = {tool["name"]: list(tool["inputSchema"]["properties"]) for tool in listed}
            if fault := _wrong_names(name, arguments or {}, takes):
                raise failure(fault)
            try:
                return await super().call_tool(name, arguments, *more, **options)
            except failure as error:
                wrong = error.__cause__
                if not isinstance(wrong, ValidationError):
                    raise
                raise failure(f"{name}: {'; '.join(_wrong_arguments(wrong))}") from error

    return PlainErrors


def _wrong_names(name: str, given: Iterable[str], takes: Mapping[str, list[str]]) -> str:
    """Return why a call names no tool, or an argument that its tool lacks; empty: it is right.

    A tool without arguments accepts any: some clients send one to it.
    """
    if name not in takes:
        hint = suggestion(name, takes) or f"the tools are {', '.join(takes)}"
        return f"no tool {name!r}; {hint}"
    foreign = [item for item in given if item not in takes[name]] if takes[name] else []
    known = ", ".join(f"`{item}`" for item in takes[name])
    return f"{name}: there is no argument `{foreign[0]}`; it takes {known}" if foreign else ""


def _wrong_arguments(wrong: ValidationError) -> Iterator[str]:
    for item in wrong.errors():
        argument = ".".join(map(str, item["loc"])) or "the arguments"
        if item["type"] == "missing":
            yield f"`{argument}` is missing"
        else:
            kind = "a whole number" if item["type"].startswith("int_") else "text"
            yield f"`{argument}` must be {kind}"


def serve(
    sdk: Sdk, agent: AgentProblems, *, stop: Callable[[], None], warn: Callable[[str], None]
) -> None:
    """Serve an agent's problems to the client at standard input and output, until it disconnects.

    `stop` ends a running evaluation; `warn` prints a message for the person who runs the server.
    """
    # Not a thread of the event loop, which would wait for it when the client disconnects.
    with ThreadPoolExecutor(1, "evaluate") as one_by_one:
        tools = _Tools(agent, one_by_one, sdk, warn)
        server = sdk.make(NAME, instructions=INSTRUCTIONS, log_level="WARNING")
        # The package finds the argument for progress by this type, which is known only now.
        _Tools.evaluate.__annotations__["context"] = sdk.context
        choosing = [] if agent.fixed else [tools.problems, tools.choose_problem]
        reading = (tools.problems, tools.explain, tools.problem, tools.history, tools.best_code)
        for tool in (*choosing, tools.evaluate, *reading[1:]):
            hints = {"readOnlyHint": tool in reading, "openWorldHint": False}
            # The schema of the structured output.
            function = vars(_Tools)[tool.__name__]
            function.__annotations__["return"] = Annotated[sdk.answer, FACTS[tool.__name__]]
            server.add_tool(
                tool, description=inspect.getdoc(tool), annotations=sdk.annotations(hints)
            )
        try:
            with sdk.wire():
                server.run()
        finally:
            agent.stop()
            stop()


FACTS: dict[str, type[Record]] = {
    "problems": ProblemList,
    "choose_problem": ProblemFacts,
    "evaluate": EvaluatedTurn,
    "explain": TurnFacts,
    "problem": ProblemFacts,
    "history": History,
    "best_code": BestCode,
}
"""The type of each tool's structured output."""


@dataclass
class _Tools:
    """The tools, as methods for the `mcp` package. Their docstrings are for agents."""

    agent: AgentProblems
    one_by_one: ThreadPoolExecutor
    sdk: Sdk
    warn: Callable[[str], None]

    async def problems(
        self, matching: Annotated[str, Field(description="Words; empty: all problems.")] = ""
    ) -> Any:  # noqa: ANN401 - of the package
        """List the problems that you can choose, by words of their address or description."""
        with self._as_tool_errors("problems"):
            return self._answer(self.agent.problems(matching))

    async def choose_problem(
        self,
        address: Annotated[str, Field(description="From `problems`, or the path of a file.")],
    ) -> Any:  # noqa: ANN401
        """Choose the problem to work on, and show it; its earlier turns still count."""
        with self._as_tool_errors("choose_problem"):
            # Not while a candidate for another problem is judged.
            loop = asyncio.get_running_loop()
            chosen = loop.run_in_executor(self.one_by_one, self.agent.choose, address)
            return self._answer(await chosen)

    async def evaluate(
        self,
        code: Annotated[str, Field(description="The whole source file of a candidate.")],
        context: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Judge a candidate: is it right, did it do the work itself, and how fast is it?

        Returns the verdict, its reasons, the number of this turn and the best turn so far. A call
        takes from seconds to some minutes. If you give up a call early, the turn is still judged,
        and `history` shows it.
        """
        loop, began = asyncio.get_running_loop(), time.monotonic()
        with self._as_tool_errors("evaluate"):
            evaluation = loop.run_in_executor(self.one_by_one, self.agent.evaluate, code)
            while not (await asyncio.wait({evaluation}, timeout=PROGRESS_S))[0]:
                # A client gives up a call of which it hears nothing.
                took_s = time.monotonic() - began
                await context.report_progress(took_s, message=self.agent.doing)
            return self._answer(evaluation.result())

    async def explain(
        self, turn: Annotated[int, Field(description="Number of the turn, from evaluate.")]
    ) -> Any:  # noqa: ANN401
        """Explain a turn at more length: outcome, times, outputs, findings, what limits it."""
        with self._as_tool_errors("explain"):
            return self._answer(self.agent.explain(turn))

    async def problem(self) -> Any:  # noqa: ANN401
        """Show the problem: its reference, the rules, and what a candidate must define."""
        with self._as_tool_errors("problem"):
            return self._answer(self.agent.problem())

    async def history(self) -> Any:  # noqa: ANN401
        """List all turns, one line each: verdict, and speed-up with its 95 % interval."""
        with self._as_tool_errors("history"):
            return self._answer(self.agent.history())

    async def best_code(self) -> Any:  # noqa: ANN401
        """Return the source file of the fastest correct turn so far."""
        with self._as_tool_errors("best_code"):
            return self._answer(self.agent.best_code())

    def _answer(self, made: ToolAnswer[Any]) -> Any:  # noqa: ANN401
        content = [{"type": "text", "text": made.text}]
        facts = made.facts.model_dump(mode="json")
        return self.sdk.answer.model_validate({"content": content, "structuredContent": facts})

    @contextmanager
    def _as_tool_errors(self, tool: str) -> Iterator[None]:
        """Turn internal errors into errors of the tool, so that the server goes on."""
        try:
            with boundary(InfrastructureError, f"{tool} failed, which is a fault of tilewright"):
                yield
        except TilewrightError as error:
            cause = error.__cause__
            more = "" if cause is None else "\n" + "".join(traceback.format_exception(cause))
            self.warn(f"{error}{more}".rstrip())
            raise self.sdk.failure(str(error)) from error


@contextmanager
def _own_wire() -> Iterator[None]:
    """Point descriptor 1 at standard error, so that only `sys.stdout` reaches the client."""
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
