"""Bars: cost of a search turn in the driver, and searches that are killed and resumed.

A function of the code gives the verdicts, so the bars measure the search loop alone.
`python -m benchmarks.search.loop_cost FOLDER PAUSE` starts or resumes one run in a folder.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.bars import Bar
from tilewright import __version__
from tilewright.config import Config, load
from tilewright.loop.answer_evaluator import AnswerEvaluator
from tilewright.loop.budget import BudgetGuard
from tilewright.loop.driver import drive
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.rollout_environment import RolloutEnvironment
from tilewright.loop.run_state import SearchRun, begin_session, budget_of, resume_session
from tilewright.problems.loader import find_problem
from tilewright.records import Correct, EvalReport, EvalRequest, Problem, ReportEnvironment
from tilewright.records.event_log import EVENTS, EventLog, read_events
from tilewright.records.events import Ask, RequestsIssued, RunStarted, Turn, TurnFinished

PROBLEMS, TURNS, CONCURRENCY = 50, 40, 8
KILLS, KILL_PROBLEMS, KILL_TURNS = 20, 6, 30
MAX_TURN_MS = 5.0
"""Most milliseconds of the driver for one turn."""
MAX_GROWTH_MIB = 40.0
"""Most growth of the driver's memory over all turns, in MiB."""
STARTED = RunStarted(
    kind="optimize",
    name="scripted",
    problems="bundled",
    protocols=("strict",),
    evaluator=__version__,
    device="cpu",
)


def _settings(turns: int) -> Config:
    overrides = [f"loop.turns={turns}", "loop.options={context: top_w, w: 4}"]
    return load(overrides=overrides, environ={})


def copied_problems(count: int) -> list[Problem]:
    """Return one problem several times, under different names."""
    one = find_problem("softmax")
    return [one.model_copy(update={"id": f"bars/softmax{number}"}) for number in range(count)]


def _write(messages: Sequence[Message], ask: Ask) -> str:
    """Return code that depends on the whole prompt, so that a changed prompt changes the reply."""
    mark = random.Random(f"{ask.id} {messages[-1].text}").random()
    return f"```python\ndef softmax(x):\n    return x * {mark}\n```"


def _verdict(request: EvalRequest) -> EvalReport:
    """Return a report at once, with a speed-up that is a function of the code."""
    speed = 0.5 + 2 * random.Random(request.candidate.files[0].text).random()
    return EvalReport(
        verdict="correct",
        speedup=speed,
        speedup_low=speed * 0.98,
        speedup_high=speed * 1.02,
        outcome=Correct(),
        environment=ReportEnvironment(device="cpu", device_name="none", host={}, versions={}),
        seed="0" * 32,
        request=request,
        evaluator=__version__,
    )


def played_turns(
    folder: Path, problems: list[Problem], turns: int, evaluation_s: float
) -> Iterator[Turn]:
    """Play a run in a folder, or resume it, with evaluations that wait `evaluation_s`."""
    settings = _settings(turns)
    session: SearchRun
    if (folder / EVENTS).exists():
        session = resume_session(folder, settings)
    else:
        session = begin_session(folder, STARTED, problems, settings)

    def evaluate(request: EvalRequest) -> EvalReport:
        time.sleep(evaluation_s)
        return _verdict(request)

    known = {problem.id: problem for problem in problems}
    environment = RolloutEnvironment(settings, AnswerEvaluator(folder, evaluate))
    worker = RolloutWorker(environment, Scripted(_write), known, session.strategy)
    guard = BudgetGuard(
        budget_of(settings.loop), session.finished, worker.max_cost, eval_timeout_s=1.0
    )
    with EventLog(folder) as log:
        for turn in drive(
            session.strategy,
            worker.play,
            log,
            max_concurrency=CONCURRENCY,
            waiting=session.waiting,
            admit=guard.reserve,
        ):
            guard.commit(turn)
            yield turn


def _resident_mib() -> float:
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * 4096 / (1 << 20)


def overhead() -> list[Bar]:
    """Make many turns that cost nothing themselves, and measure time and memory."""
    total = PROBLEMS * TURNS
    with tempfile.TemporaryDirectory() as place:
        start, marks = time.monotonic(), []
        for number, _ in enumerate(
            played_turns(Path(place), copied_problems(PROBLEMS), TURNS, 0.0), start=1
        ):
            if number % (total // 10) == 0:
                marks.append(_resident_mib())
                print(f"{number} turns, {marks[-1]:.0f} MiB", flush=True)
        each = (time.monotonic() - start) / total * 1e3
    growth = marks[-1] - marks[1]
    return [
        Bar(
            f"loop: {total} turns",
            f"< {MAX_TURN_MS:g} ms each",
            f"{each:.2f} ms",
            each < MAX_TURN_MS,
        ),
        Bar("loop: memory", f"< {MAX_GROWTH_MIB:g} MiB more at the end", f"{growth:+.0f} MiB",
            growth < MAX_GROWTH_MIB),
    ]  # fmt: skip


def _facts(folder: Path) -> dict[str, object]:
    """Return what kills may not change in each turn; raise if the log has a turn twice."""
    found: dict[str, object] = {}
    for event in read_events(folder):
        if isinstance(event, TurnFinished):
            turn = event.turn
            if turn.ask.id in found:
                raise AssertionError(f"{turn.ask.id} is in the log twice")
            verdicts = [(item.verdict, item.speedup) for item in turn.judgements]
            found[turn.ask.id] = (turn.ask, turn.prompt, turn.source, verdicts)
    return found


def _killed(folder: Path) -> int:
    """Finish a run that is killed at random moments; return the number of kills."""
    choices, kills = random.Random(5), 0
    command = [sys.executable, "-m", "benchmarks.search.loop_cost", str(folder), "0.05"]
    while True:
        before = _turns_in_log(folder)
        process = subprocess.Popen(command)
        # Wait for a turn first: most of the time goes into starting, and kills should hit turns.
        while process.poll() is None and kills < KILLS and _turns_in_log(folder) == before:
            time.sleep(0.01)
        if kills < KILLS:
            time.sleep(choices.uniform(0.0, 0.15))
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        process.wait()
        return kills


def _turns_in_log(folder: Path) -> int:
    try:
        return (folder / EVENTS).read_bytes().count(b'"event":"turn_finished"')
    except OSError:
        return 0


def kills() -> list[Bar]:
    """Compare a run that was killed repeatedly with an undisturbed one."""
    with tempfile.TemporaryDirectory() as place:
        undisturbed, disturbed = Path(place) / "undisturbed", Path(place) / "killed"
        for folder in (undisturbed, disturbed):
            folder.mkdir()
        for _ in played_turns(undisturbed, copied_problems(KILL_PROBLEMS), KILL_TURNS, 0.0):
            pass
        made = _killed(disturbed)
        wanted, seen = _facts(undisturbed), _facts(disturbed)
        issued = [e.asks for e in read_events(disturbed) if isinstance(e, RequestsIssued)]
        ids = [ask.id for asks in issued for ask in asks]
    same = sum(seen.get(name) == fact for name, fact in wanted.items())
    held = same == len(wanted) == len(seen) and len(ids) == len(set(ids)) and made == KILLS
    text = f"{same} of {len(wanted)} turns the same after {made} kills"
    return [Bar(f"loop: killed {KILLS} times", "the same turns, each once", text, held)]


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Return the bars."""
    return [*overhead(), *kills()]


if __name__ == "__main__":
    target, pause = Path(sys.argv[1]), float(sys.argv[2])
    for _ in played_turns(target, copied_problems(KILL_PROBLEMS), KILL_TURNS, pause):
        pass
