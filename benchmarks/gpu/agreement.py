"""Agreement with KernelBench's event protocol: it and the strict one time the same references."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.bars import Bar, home
from benchmarks.gpu.aa import WORKERS, chosen
from benchmarks.gpu.requests import request
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.scoring import bootstrap

LONG_US, WANTED = 50.0, 40


def run(path: Path, budget_s: float, out: Path) -> list[Bar]:
    """Time references of levels 1 and 2 both ways, until there are enough that take long enough."""
    rows: list[dict[str, object]] = []
    stop = time.monotonic() + budget_s
    items = chosen(path, 120)

    def work(worker: int) -> None:
        for item in items[worker::WORKERS]:
            if time.monotonic() > stop or len(rows) >= WANTED:
                return
            if (found := _both(local, item)) is not None:
                rows.append(found)
                print(found, flush=True)

    with LocalExecutor(home(), WORKERS) as local, ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(work, worker) for worker in range(WORKERS)]:
            done.result()
    (out / "gpu_agreement.json").write_text(json.dumps(rows), encoding="utf-8")
    return [_bar(rows)]


def _both(local: LocalExecutor, item: dict[str, object]) -> dict[str, object] | None:
    """Return the times of a reference by both protocols, in microseconds, where it is long."""
    name, code = f"level{item['level']}-{item['problem_id']}", str(item["code"])
    taken: dict[str, object] = {"problem": name}
    for protocol in ("strict", "official"):
        text = f"{code}\n\nModelNew = Model\n# {protocol}\n"
        asked = request(code, text, name, entry="ModelNew", more=(f"eval.protocol={protocol}",))
        try:
            report = local.evaluate(asked)
        except TilewrightError as error:
            print(f"{name}: {error}"[:200], flush=True)
            return None
        if not report.comparisons:
            print(f"{name}: {report.verdict}", flush=True)
            return None
        taken[protocol] = us = report.comparisons[0].baseline_timing.median_us
        if protocol == "strict" and us <= LONG_US:
            return None
    return taken


def _bar(rows: list[dict[str, object]]) -> Bar:
    pairs = [(float(str(r["strict"])), float(str(r["official"]))) for r in rows]
    ratios = [official / strict for strict, official in pairs if strict > LONG_US]
    middle = bootstrap.median(ratios) if ratios else math.nan
    held = len(ratios) >= WANTED and abs(middle - 1) <= 0.02
    title = "agreement: event protocol over strict, above 50 us"
    return Bar(title, "0.98 to 1.02 on 40", f"{middle:.4f} on {len(ratios)}", held)
