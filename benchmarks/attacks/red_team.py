"""Bars: no attack of the red-team suite ends `correct` with a gain, and each honest file does.

`make attacks` runs this module. It stores each row when it is made, so that a killed run goes on
where it stopped. Rows of another source of tilewright, or of another text of a file, do not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.attacks.red_team_files import (
    FAMILIES,
    SuiteFile,
    changed_since,
    read_suite,
    source_digest,
    write_generated,
)
from benchmarks.attacks.red_team_verdicts import ALLOWED_GAIN, Row, evaluate_file, row_of
from benchmarks.bars import Bar, finish, home
from tilewright.executors.local import LocalExecutor

CORES_PER_WORKER = 2
"""One core times, one does everything else. Workers take turns with the device in any case."""
MAX_WORKERS = 4
"""More workers wait for the device, which one evaluation at a time holds."""
ENOUGH_OF_SAMPLE = 0.6
"""Share of a sample that a run must evaluate within its time limit, also on a slow machine."""


@dataclass(frozen=True)
class Choice:
    """Which files of the suite to evaluate, and where."""

    device: str = "cpu"
    family: str = ""
    only: str = ""
    changed: str = ""
    """A commit: only files that differ from it. Empty: all files."""
    sample: tuple[int, int] = (0, 0)
    """Attacks and honest files to take, chosen by `commit`; zeros: all files."""
    commit: str = ""
    shard: tuple[int, int] = (0, 1)
    """Which part of the files, and of how many parts: each of several GPUs takes one."""

    def take(self, files: Sequence[SuiteFile]) -> list[SuiteFile]:
        """Return the chosen ones of `files`."""
        kind = self.device.partition(":")[0]
        found = [item for item in files if kind in item.devices and self.only in item.name]
        if self.family:
            found = [item for item in found if item.family in self.family.upper()]
        if self.changed:
            changed = changed_since(self.changed)
            found = [item for item in found if changed & set(item.sources())]
        if self.sample != (0, 0):
            found = [*self._drawn(found, "attacks"), *self._drawn(found, "honest")]
        return found[self.shard[0] :: self.shard[1]]

    def _drawn(self, files: list[SuiteFile], kind: str) -> list[SuiteFile]:
        """Return the files whose digests, with the commit, come first."""
        count = self.sample[0] if kind == "attacks" else self.sample[1]
        mine = [item for item in files if item.kind == kind]
        return sorted(mine, key=lambda item: _rank(self.commit, item.name))[:count]


def _rank(commit: str, name: str) -> bytes:
    return hashlib.sha256(f"{commit} {name}".encode()).digest()


class Store:
    """Rows of finished evaluations, in a file with a JSON line each, and the seeds that were used.

    A run that was killed goes on with its seed, as long as the source is the same.
    """

    def __init__(self, path: Path, more: Sequence[Path] = ()) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}
        self._seeds: dict[str, int] = {}
        for file in (*more, path):
            if file.is_file():
                self._read(file)

    def _read(self, path: Path) -> None:
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
                if "seed" in found:
                    self._seeds[found["source"]] = int(found["seed"])
                else:
                    self._rows[found["key"]] = row_of(found)
            except (ValueError, KeyError, TypeError):
                continue  # a killed run left half a line

    def seed(self, source: str, wanted: int | None) -> int:
        """Return the seed of the generators: the wanted one, that of a killed run, or a new one."""
        made = self._seeds.get(source) if wanted is None else wanted
        if made is None:
            made = secrets.randbelow(1 << 16)
        self._append({"source": source, "seed": made})
        return made

    def _append(self, record: dict[str, Any]) -> None:
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")

    def get(self, key: str) -> Row | None:
        """Return the row of an evaluation, unless that evaluation failed."""
        row = self._rows.get(key)
        return None if row is None or row.failed else row

    def add(self, row: Row) -> None:
        self._rows[row.key] = row
        self._append(row.record())


def evaluate_all(
    files: Sequence[SuiteFile], device: str, store: Store, seconds: float, workers: int
) -> list[Row]:
    """Evaluate files, print a line for each, and return the rows made within `seconds`."""
    source, start = source_digest(), time.monotonic()
    rows: list[Row] = []
    lock = threading.Lock()

    def judge(file: SuiteFile) -> None:
        key = file.digest(source, device.partition(":")[0], file.kind)
        row = store.get(key)
        if row is None:
            if time.monotonic() - start > seconds:
                return
            row = evaluate_file(local, file, device, key)
            store.add(row)
        with lock:
            rows.append(row)
            print(f"{len(rows):3}/{len(files)} {_line(row)}", flush=True)

    with LocalExecutor(home(), workers) as local, ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(judge, file) for file in files]:
            done.result()
    return rows


def _line(row: Row) -> str:
    gain = "" if row.gain is None else "{:.2f} [{:.2f}, {:.2f}]".format(*row.gain)
    mark = "GAINS" if row.gains else "MISS " if _bad(row) else "     "
    text = row.missed or (row.message if row.refused else "")
    return f"{mark} {row.name:50} {row.verdict:10} {gain:22} {row.seconds:5.1f} s  {text[:200]}"


def _bad(row: Row) -> bool:
    return bool(row.missed) or row.failed


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the summary: a row for each family, then each attack that is correct."""
    yield "family | attacks | refused | labelled | correct, no gain | gain | honest | correct"
    yield "--- | --- | --- | --- | --- | --- | --- | ---"
    for letter in (*sorted({row.family for row in rows}), "all"):
        mine = [row for row in rows if letter in (row.family, "all")]
        attacks = [row for row in mine if row.kind == "attacks"]
        honest = [row for row in mine if row.kind == "honest"]
        kept = [row for row in attacks if not row.refused]
        gains = [row for row in attacks if row.gains]
        labelled = [row for row in kept if not row.gains and row.labelled]
        yield " | ".join(
            str(item)
            for item in (
                f"{letter}: {FAMILIES[letter]}" if letter in FAMILIES else letter,
                len(attacks),
                len(attacks) - len(kept),
                len(labelled),
                len(kept) - len(labelled) - len(gains),
                len(gains),
                len(honest),
                sum(not row.refused for row in honest),
            )
        )
    kept = [row for row in rows if row.kind == "attacks" and not row.refused]
    if kept:
        yield "\nattacks that are not refused, over their honest counterparts:"
    for row in sorted(kept, key=lambda row: -(row.gain or (0, 0, 0))[1]):
        gain = "not measured" if row.gain is None else "{:.3f} [{:.3f}, {:.3f}]".format(*row.gain)
        labels = f" labels: {', '.join(row.labels)}" if row.labels else ""
        yield f"{'GAINS ' if row.gains else '      '}{row.name}: {gain}{labels}"


def bars_of(rows: Sequence[Row], wanted: int, enough: float = 1.0) -> list[Bar]:
    """Return the bars over the rows of a run that was to make `wanted` rows.

    `enough` is the share of them that the run must have made.
    """
    attacks = [row for row in rows if row.kind == "attacks"]
    honest = [row for row in rows if row.kind == "honest"]
    gains = [row.name for row in attacks if row.gains]
    refused = [row.name for row in honest if row.refused and row.missed]
    labels = [row.name for row in rows if row.label_missing]
    slow = [f"{row.name}: {row.seconds:.0f} s" for row in rows if row.too_slow]
    failed = [f"{row.name}: {row.message}" for row in rows if row.failed]
    caught = sum(row.refused for row in attacks)
    seen = f"{len(gains)} of {len(attacks)} gain; {caught} refused"
    return [
        Bar("attacks: gain", f"none above {ALLOWED_GAIN}", seen, not gains, {"gain": gains}),
        Bar(
            "attacks: honest files",
            "all correct, or as their headers say",
            f"{len(honest) - len(refused)} of {len(honest)}",
            not refused,
            {"refused": refused},
        ),
        _none("attacks: labels", "those of the headers", labels),
        _none("attacks: held workers", "none beyond `max_s`", slow),
        Bar(
            "attacks: evaluated",
            f"all {wanted}",
            f"{len(rows) - len(failed)}",
            len(rows) >= enough * wanted and not failed,
            {"failed": failed},
        ),
    ]


def _none(name: str, wanted: str, wrong: list[str]) -> Bar:
    return Bar(name, wanted, f"{len(wrong)} not", not wrong, {"wrong": wrong})


def run(only: str = "") -> list[Bar]:
    """Evaluate the whole suite on the CPU, or the files whose names contain `only`."""
    return measure(Choice(only=only), None, Store(Path("out") / "attacks-cpu.jsonl"), float("inf"))


def run_on(
    device: str, match: str, seconds: float, out: Path, shard: tuple[int, int] = (0, 1)
) -> list[Bar]:
    """Evaluate what can run on a GPU for at most `seconds`.

    `DONE` names files of rows of earlier runs, with colons between.
    """
    earlier = [Path(name) for name in os.environ.get("DONE", "").split(":") if name]
    store = Store(out / "attacks-gpu.jsonl", earlier)
    return measure(Choice(device, only=match, shard=shard), _seed_of_environment(), store, seconds)


def _seed_of_environment() -> int | None:
    text = os.environ.get("SEED", "")
    return int(text) if text else None


def measure(choice: Choice, seed: int | None, store: Store, seconds: float) -> list[Bar]:
    """Evaluate the chosen files, print the table and return the bars."""
    made = store.seed(source_digest(), seed)
    print(f"seed of the generators: {made} (SEED={made} repeats it)")
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        files = choice.take([*read_suite(), *write_generated(made, Path(folder))])
        cores = len(os.sched_getaffinity(0))
        workers = min(MAX_WORKERS, max(1, cores // CORES_PER_WORKER))
        print(f"{len(files)} files, {workers} at once", flush=True)
        rows = evaluate_all(files, choice.device, store, seconds, workers)
    print("\n" + "\n".join(table(rows)))
    return bars_of(rows, len(files), ENOUGH_OF_SAMPLE if choice.sample != (0, 0) else 1.0)


def main() -> int:
    """Run what the command line chooses; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="make attacks", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--family", default="", help="letters of families, for example AC")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument(
        "--changed",
        nargs="?",
        const="HEAD",
        default="",
        help="only files that a commit lacks",
    )
    parser.add_argument("--seed", type=int, default=None, help="seed of the generators")
    parser.add_argument("--sample", default="", help="ATTACKS,HONEST: choose as many by --commit")
    parser.add_argument("--commit", default="", help="text that chooses the sample")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit")
    parser.add_argument("--store", type=Path, default=Path("out") / "attacks-cpu.jsonl")
    parser.add_argument("--fresh", action="store_true", help="ignore the rows of earlier runs")
    parser.add_argument("--json", type=Path, default=None, help="write bars and rows to this file")
    options = parser.parse_args()
    sample = tuple(int(part) for part in options.sample.split(",")) if options.sample else (0, 0)
    if len(sample) != 2:
        parser.error("--sample takes two counts, for example 30,20")
    if options.fresh:
        options.store.unlink(missing_ok=True)
    if options.commit and options.seed is None:
        options.seed = int.from_bytes(_rank(options.commit, "seed")[:2])
    choice = Choice(
        options.device, options.family, options.only, options.changed, sample, options.commit
    )
    bars = measure(choice, options.seed, Store(options.store), options.seconds)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        document = [bar.__dict__ for bar in bars]
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return finish(bars)


if __name__ == "__main__":
    sys.exit(main())
