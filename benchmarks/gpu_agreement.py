"""Agreement with KernelBench's event protocol: references timed by it and by the strict one."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

from benchmarks.bars import Bar, executor
from benchmarks.gpu_aa import chosen
from benchmarks.gpu_requests import request
from tilewright.errors import TilewrightError
from tilewright.scoring import statistics

LONG_US = 50.0


def run(path: Path, budget_s: float, out: Path) -> list[Bar]:
    """Time references of levels 1 and 2 both ways."""
    rows: list[dict[str, object]] = []
    stop = time.monotonic() + budget_s
    with executor() as local:
        for item in chosen(path, 60):
            if time.monotonic() > stop:
                break
            name, code = f"level{item['level']}-{item['problem_id']}", str(item["code"])
            taken = {}
            for protocol in ("strict", "official"):
                text = f"{code}\n\nModelNew = Model\n# {protocol}\n"
                more = (f"eval.protocol={protocol}",)
                asked = request(code, text, name, entry="ModelNew", more=more)
                try:
                    report = local.evaluate(asked)
                except TilewrightError as error:
                    print(f"{name}: {error}"[:200], flush=True)
                    break
                if report.comparisons:
                    taken[protocol] = report.comparisons[0].reference.median_us
            if len(taken) == 2:
                rows.append({"problem": name, **taken})
                print(rows[-1], flush=True)
    (out / "gpu_agreement.json").write_text(json.dumps(rows), encoding="utf-8")
    return [_bar(rows)]


def _bar(rows: list[dict[str, object]]) -> Bar:
    pairs = [(float(str(r["strict"])), float(str(r["official"]))) for r in rows]
    ratios = [official / strict for strict, official in pairs if strict > LONG_US]
    middle = statistics.median(ratios) if ratios else math.nan
    held = len(ratios) >= 40 and abs(middle - 1) <= 0.02
    title = "agreement: event protocol over strict, above 50 us"
    return Bar(title, "0.98 to 1.02 on 40", f"{middle:.4f} on {len(ratios)}", held)
