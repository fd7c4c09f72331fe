"""The summary of an audit as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.audit.cells import all_cells
from benchmarks.audit.libraries import LIBRARIES
from benchmarks.audit.results import Row, latest
from benchmarks.audit.summary import (
    agreements,
    counts,
    library_of,
    repeats,
    result_of,
    speedup_text,
)
from tilewright.scoring.intervals import Interval, geometric_mean_interval

RESULTS = ("faster", "no difference", "slower", "correct, not timed")
OTHERS = ("incorrect", "failed", "rejected", "unjudged")
UNCHECKED = "Nobody has checked this cell by hand yet."


def summary_page(
    rows: Sequence[Row], notes: dict[str, str], source: str, reproducers: Sequence[str]
) -> str:
    """Return the page; `notes` hold what people found, by the id of a cell."""
    parts = [
        ["# Audit of kernels from the package index", ""],
        _begin(rows, source),
        ["", "## Results", ""],
        _results(rows),
        ["", "## Cells that are not correct", ""],
        _wrong(rows, notes, reproducers),
        ["", "## What was not judged", ""],
        _not_judged(),
        ["", "## What the libraries say", ""],
        _table(
            ("library", "claim", "source"),
            (
                (library.name, claim.text, claim.source)
                for library in LIBRARIES.values()
                for claim in library.claims
            ),
        ),
        ["", "## Compared with `triton.testing.do_bench`", ""],
        _do_bench(rows, notes),
        ["", "## Measured again", ""],
        _again(rows, notes),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _begin(rows: Sequence[Row], source: str) -> Iterator[str]:
    slices = [row for row in rows if row["kind"] == "slice"]
    timed = [row for row in latest(rows, "cell").values() if "device" in row]
    devices = sorted({row["device"] for row in timed})
    versions = sorted({f"{k} {v}" for row in timed for k, v in row["versions"].items()})
    yield f"Machine: {', '.join(devices) or 'none'}."
    yield f"Versions: {', '.join(versions) or 'none'}."
    yield f"Dates: {', '.join(sorted({row['date'] for row in slices}))}."
    yield f"Commits: {', '.join(sorted({row['commit'] or 'unknown' for row in slices}))}."
    yield ""
    yield "Commands:"
    yield ""
    yield from sorted({f"- `{row['command']}`" for row in slices})
    yield ""
    yield f"`make audit-pages RESULTS={source}` made this page from the results."
    yield "The shapes were chosen before any result, and are the same for all libraries."
    yield "The strict judge decided each verdict, as it does for any candidate."
    yield f"{len(latest(rows, 'cell'))} of {len(all_cells())} cells have a result so far."
    failed = [row for row in latest(rows, "compile").values() if row.get("error")]
    if failed:
        yield f"torch.compile failed for {len(failed)} references: `{failed[0]['error']}`."


def _results(rows: Sequence[Row]) -> Iterator[str]:
    found = counts(rows)
    lines = []
    for row in (row for row in rows if row["kind"] == "library"):
        name = row["library"]
        numbers = found.get(name)
        if row["reason"] or numbers is None:
            lines.append((name, row["version"] or "", "0", *[""] * 10, row["reason"]))
            continue
        lines.append(
            (
                f"[{name}]({name}.html)",
                row["version"],
                str(numbers.total()),
                *(str(numbers[key]) for key in (*RESULTS, *OTHERS)),
                _mean(rows, name, "eager"),
                _mean(rows, name, "compile"),
                "",
            )
        )
    heads = ("library", "version", "cells", *RESULTS, *OTHERS)
    yield from _table((*heads, "mean, eager", "mean, torch.compile", "left out"), lines)
    yield ""
    yield "`faster` and `slower` are against eager torch, by the 95 % interval."
    yield "A mean is the geometric mean of the speed-ups of all timed cells, with its interval."


def _mean(rows: Sequence[Row], library: str, baseline: str) -> str:
    intervals = [
        Interval(*row["against"][baseline])
        for cell, row in latest(rows, "cell").items()
        if library_of(cell) == library
        and row["verdict"] == "correct"
        and (row.get("against") or {}).get(baseline) is not None
    ]
    if not intervals:
        return ""
    made = geometric_mean_interval(intervals)
    return speedup_text([made.estimate, made.low, made.high])


def _wrong(rows: Sequence[Row], notes: dict[str, str], reproducers: Sequence[str]) -> Iterator[str]:
    lines = []
    for cell, row in latest(rows, "cell").items():
        if row["verdict"] == "correct":
            continue
        name = f"{cell.replace('/', '--')}.py.txt"
        link = f"[script](reproducers/{name})" if name in reproducers else ""
        lines.append((cell, result_of(row), row["message"], link, notes.get(cell, UNCHECKED)))
    if not lines:
        yield "All cells are correct."
        return
    yield from _table(("cell", "verdict", "reason", "reproducer", "who is right"), lines)


def _not_judged() -> Iterator[str]:
    yield from _table(
        ("library", "operator", "reason"),
        (
            (library.name, item.operator, item.reason)
            for library in LIBRARIES.values()
            for item in library.not_judged
        ),
    )


def _do_bench(rows: Sequence[Row], notes: dict[str, str]) -> Iterator[str]:
    pairs = agreements(rows)
    agreed = sum(pair.agrees for pair in pairs)
    yield f"{agreed} of {len(pairs)} cases above 50 us agree within 3 %."
    queued = [pair for pair in pairs if not pair.waits and pair.clean is not None]
    hidden = sum(pair.close(pair.hidden) for pair in queued)
    clean = sum(pair.close(pair.clean) for pair in queued)
    yield "`do_bench` launches each call while the device is nearly idle, so a call of many short"
    yield "kernels takes as long as its launches. It also clears the cache by writing, and the"
    yield "device stores what was written while the call runs. The judge hides launches, and clears"
    yield "the cache by reading. Two more ratios of the same process show this: with hidden"
    yield "launches, and with a cache that was cleared by reading as well."
    yield f"Cases in which no call waits for the device: {len(queued)}."
    yield f"{hidden} of them agree with hidden launches, and {clean} with a clean cache too."
    wrong = [pair for pair in pairs if not pair.agrees]
    if wrong:
        yield ""
        yield from _table(
            ("cell", "case", "judge", "do_bench", "hidden launches", "clean cache", "cause"),
            (
                (
                    pair.cell,
                    pair.case,
                    f"{pair.ours:.3f}",
                    f"{pair.theirs:.3f} ({pair.difference:+.0%})",
                    _ratio(pair.hidden),
                    _ratio(pair.clean),
                    notes.get(f"{pair.cell} do_bench") or pair.cause or "unknown",
                )
                for pair in wrong
            ),
        )


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def _again(rows: Sequence[Row], notes: dict[str, str]) -> Iterator[str]:
    found = repeats(rows)
    if not found:
        yield "No cell was measured again yet."
        return
    seeds = sorted({str(row["seed"]) for row in rows if row["kind"] == "slice" and row["seed"]})
    yield f"Seed: {', '.join(seeds)}."
    yield ""
    yield from _table(
        ("cell", "first verdict", "first", "second verdict", "second", "agree", "cause"),
        (
            (
                cell,
                one["verdict"],
                speedup_text((one.get("against") or {}).get("eager")),
                other["verdict"],
                speedup_text((other.get("against") or {}).get("eager")),
                "yes" if same else "NO",
                "" if same else notes.get(f"{cell} again", "unknown"),
            )
            for cell, one, other, same in found
        ),
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    for row in (heads, ["---"] * len(heads), *rows):
        yield "| " + " | ".join(_cell(str(text)) for text in row) + " |"


def _cell(text: str) -> str:
    plain = text.encode("ascii", "replace").decode()
    return plain.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
