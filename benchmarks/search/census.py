"""Judge every program of a space, and write the census that `census:FILE` answers from.

python -m benchmarks.search.census cpp_matmul --out census.jsonl
python -m benchmarks.search.census triton_gemm --out 0.jsonl --part 0/4 --device cuda:0 --workers 3
python -m benchmarks.search.census triton_gemm --merge 0.jsonl 1.jsonl 2.jsonl 3.jsonl --out FILE.gz

The programs come in a random order. The correct ones of the fastest tenth of a part are then judged
three more times. A run may be killed at any moment; the same command continues it.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path

from tilewright import config
from tilewright.config import Config
from tilewright.executors.local import LocalExecutor
from tilewright.loop.random_values import chooser
from tilewright.problems.candidates import make_candidate
from tilewright.problems.loader import read_problem
from tilewright.problems.requests import build_request
from tilewright.records import EvalReport, EvalRequest, SourceFile
from tilewright.records.census import (
    Census,
    CensusHeader,
    CensusRow,
    line_of,
    read_census,
    row_of,
    source_digest,
)
from tilewright.records.codes import Stage
from tilewright.spaces import SPACES
from tilewright.spaces.space import Knobs, Space, programs, source

SEED = 34
"""Seed of the order of programs, so that all parts agree on it."""
FURTHER_TRIALS = 3
"""Further trials of the fastest programs, from which the spread between trials is known."""
FASTEST_SHARE = 0.1
MAX_LOST = 3
"""Consecutive evaluations without a verdict after which a run ends: the machine is broken."""
SHOWN_EVERY_S = 30.0
SUFFIXES = {"cpp": ".cpp", "python": ".py"}


def order(space: Space, part: tuple[int, int] = (0, 1)) -> list[Knobs]:
    """Return the programs of a part in the order in which they are judged."""
    every = programs(space)
    chooser(SEED, "census", space.name).shuffle(every)
    return every[part[0] :: part[1]]


def request_of(space: Space, knobs: Knobs, settings: Config) -> EvalRequest:
    """Return the request to judge a program."""
    problem = read_problem(space.problem_path, group="spaces/")
    file = SourceFile(path=f"candidate{SUFFIXES[space.tag]}", text=source(space, knobs))
    made = make_candidate((file,), problem)
    if isinstance(made, tuple):
        raise ValueError(f"{space.name}: {knobs} does not parse: {made[1].message}")
    return build_request(made, problem, settings)


def header_of(space: Space, part: tuple[int, int], report: EvalReport) -> CensusHeader:
    """Return the header of a census whose first report is given."""
    request = report.request
    clocks = (item.candidate.method for item in report.comparisons)
    default = "host_clock" if request.device == "cpu" else "cuda_events_trusted"
    return CensusHeader(
        space=space.name,
        problem=request.problem.id,
        reference=source_digest(request.problem.source.text),
        programs=len(programs(space)),
        part=part,
        protocol=request.protocol,
        baselines=tuple(item.name for item in request.baselines),
        rules=request.rules,
        timing=request.timing,
        environment=report.environment,
        method=next(clocks, default),
        evaluator=report.evaluator,
        date=datetime.now(UTC).date().isoformat(),
    )


def fastest(rows: dict[str, tuple[CensusRow, ...]]) -> list[str]:
    """Return the correct programs of the fastest tenth, by their first trial."""
    speed = {name: own[0].speedup for name, own in rows.items()}
    timed = {name: value for name, value in speed.items() if value is not None}
    count = round(FASTEST_SHARE * len(timed))
    return sorted(timed, key=lambda name: -timed[name])[:count]


def relative_error(row: CensusRow) -> float:
    """Return the half-width of the interval of a speed-up, on the logarithmic scale; 0: none."""
    return math.log(row.high / row.low) / 2 if row.low and row.high else 0.0


class CensusFile:
    """A census that grows. Lifetime: one run; an unfinished last line is cut off."""

    def __init__(self, path: Path, space: Space, part: tuple[int, int]) -> None:
        self._path, self._space, self._part = path, space, part
        self.rows: dict[str, tuple[CensusRow, ...]] = {}
        self._begun = False
        if path.exists() and (data := path.read_bytes()):
            whole = data[: data.rfind(b"\n") + 1]
            if len(whole) < len(data):
                os.truncate(path, len(whole))
            if whole:
                known = read_census(path)
                if (known.header.space, known.header.part) != (space.name, part):
                    raise SystemExit(f"{path} holds another space or part; name another file")
                self.rows, self._begun = dict(known.rows), True

    def add(self, knobs: Knobs, report: EvalReport) -> None:
        """Append the row of a report."""
        digest = source_digest(source(self._space, knobs))
        row = row_of(digest, dict(knobs), report, Stage.DEVICE_WAIT)
        lines = "" if self._begun else line_of(header_of(self._space, self._part, report))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(lines + line_of(row))
            file.flush()
            os.fsync(file.fileno())
        self._begun = True
        self.rows[digest] = (*self.rows.get(digest, ()), row)

    def forget(self, half_width: float) -> int:
        """Drop the rows whose interval is wider, so that they are judged again; return how many.

        A wide interval shows that other processes disturbed the trial. No speed-up decides.
        """
        before = sum(map(len, self.rows.values()))
        kept = {
            name: tuple(row for row in own if relative_error(row) <= half_width)
            for name, own in self.rows.items()
        }
        self.rows = {name: own for name, own in kept.items() if own}
        if self._begun:
            header = line_of(read_census(self._path).header)
            lines = [line_of(row) for own in self.rows.values() for row in own]
            fresh = self._path.with_suffix(".new")
            fresh.write_text("".join((header, *lines)), encoding="utf-8")
            fresh.replace(self._path)
        return before - sum(map(len, self.rows.values()))

    def summary(self) -> str:
        """Return the number of programs by verdict, the trials and the best speed-up so far."""
        counts = Counter(own[0].outcome.verdict for own in self.rows.values())
        trials = sum(len(own) for own in self.rows.values())
        best = max((own[0].speedup or 0.0 for own in self.rows.values()), default=0.0)
        listed = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        known, total = len(self.rows), len(order(self._space, self._part))
        return f"{known} of {total} programs: {listed}; {trials} trials; fastest {best:.2f}x"


def waiting(space: Space, part: tuple[int, int], kept: CensusFile) -> list[Knobs]:
    """Return the programs whose next trial is due: first those without any, then the fastest."""
    own = {source_digest(source(space, knobs)): knobs for knobs in order(space, part)}
    left = [knobs for digest, knobs in own.items() if digest not in kept.rows]
    if left:
        return left
    due = []
    for digest in fastest(kept.rows):
        due += [own[digest]] * (1 + FURTHER_TRIALS - len(kept.rows[digest]))
    chooser(SEED, "further trials", space.name, part[0]).shuffle(due)
    return due


def judge_all(
    space: Space, part: tuple[int, int], kept: CensusFile, executor: LocalExecutor, options: Options
) -> bool:
    """Judge what is due, as long as time is left. Return whether the census is complete."""
    end = time.monotonic() + options.seconds
    with ThreadPoolExecutor(options.workers) as pool:
        while time.monotonic() < end and (due := waiting(space, part, kept)):
            left = itertools.takewhile(lambda _: time.monotonic() < end, due)

            def begin(knobs: Knobs) -> Future[EvalReport]:
                request = request_of(space, knobs, options.settings)
                return pool.submit(executor.evaluate, request)

            _judge_round(left, begin, options.workers, kept)
    return not waiting(space, part, kept)


def _judge_round(
    left: Iterator[Knobs],
    begin: Callable[[Knobs], Future[EvalReport]],
    workers: int,
    kept: CensusFile,
) -> None:
    """Judge each program once, so many at a time."""
    running = {begin(knobs): knobs for knobs in itertools.islice(left, workers)}
    shown, lost = time.monotonic(), 0
    while running:
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            report, knobs = future.result(), running.pop(future)
            lost = lost + 1 if report.verdict == "unjudged" else 0
            if lost >= MAX_LOST:
                raise SystemExit(f"{lost} evaluations without a verdict: {report.outcome}")
            if report.verdict != "unjudged":
                kept.add(knobs, report)
            running |= {begin(knobs): knobs for knobs in itertools.islice(left, 1)}
        if time.monotonic() - shown > SHOWN_EVERY_S:
            shown = time.monotonic()
            print(kept.summary(), flush=True)


class Options(argparse.Namespace):
    """The command line."""

    space: str
    out: Path
    part: tuple[int, int]
    device: list[str]
    workers: int
    seconds: float
    overrides: list[str]
    redo_above: float | None
    merge: list[Path]
    settings: Config


def part_of(text: str) -> tuple[int, int]:
    """Read `0/4`."""
    number, _, count = text.partition("/")
    part = int(number), int(count)
    if not 0 <= part[0] < part[1]:
        raise argparse.ArgumentTypeError(f"{text}: give 0/4 to 3/4 for four parts")
    return part


def arguments(given: Sequence[str] | None) -> Options:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.census", description=__doc__)
    parser.add_argument("space", choices=sorted(SPACES))
    parser.add_argument("--out", type=Path, required=True, help="the census file")
    parser.add_argument("--part", type=part_of, default=(0, 1), help="for example 0/4")
    parser.add_argument("--device", action="append", default=[], help="repeat it for several")
    parser.add_argument("--workers", type=int, default=1, help="evaluations at once")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after them")
    parser.add_argument(
        "--set", action="append", default=[], dest="overrides", metavar="PATH=VALUE"
    )
    parser.add_argument(
        "--redo-above",
        type=float,
        metavar="HALF_WIDTH",
        help="judge trials again whose interval of the log speed-up is wider, for example 0.15",
    )
    parser.add_argument("--merge", nargs="+", type=Path, default=[], help="join the files of parts")
    return parser.parse_args(given, namespace=Options())


def merged(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of one census that holds those of several parts.

    Raises:
        SystemExit: the parts do not belong together, or one is missing.
    """
    parts: list[Census] = [read_census(path) for path in paths]
    first = parts[0].header
    model = first.environment.device_name
    for path, item in zip(paths, parts, strict=True):
        other = item.header
        if (other.space, other.environment.device_name) != (first.space, model):
            raise SystemExit(f"{path} is of another space or device than {paths[0]}")
    numbers = sorted(item.header.part[0] for item in parts)
    if numbers != list(range(first.part[1])):
        raise SystemExit(f"parts {numbers} of {first.part[1]}: give each of them once")
    yield line_of(first.model_copy(update={"part": (0, 1)}))
    for item in parts:
        for own in item.rows.values():
            yield from map(line_of, own)


def main(given: Sequence[str] | None = None) -> int:
    """Judge, or join parts; return 0 if the census is complete."""
    options = arguments(given)
    if options.merge:
        data = "".join(merged(options.merge)).encode()
        compressed = gzip.compress(data, mtime=0) if options.out.suffix == ".gz" else data
        options.out.write_bytes(compressed)
        return 0
    space = SPACES[options.space]
    devices = tuple(options.device) or ("cpu",)
    overrides = [f'eval.device="{devices[0]}"', *options.overrides]
    options.settings = config.load(None, overrides)
    kept = CensusFile(options.out, space, options.part)
    if options.redo_above is not None:
        print(f"{kept.forget(options.redo_above)} trials are judged again")
    home, several = options.settings.home, devices if len(devices) > 1 else ()
    with LocalExecutor(home, options.workers, several) as executor:
        complete = judge_all(space, options.part, kept, executor, options)
    print(kept.summary())
    print("complete" if complete else "time is up; the same command continues")
    return 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
