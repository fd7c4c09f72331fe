"""The recorded programs of KernelBench-X, with the results that its authors recorded for them.

The repository has no predictions of its published methods. `data/kbx_corpus` has the tasks on which
one method's result changed from one round to the next: the programs before and after, and whether
each passed the call and the execution. So a verdict can be compared, and an accuracy cannot.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.published_predictions.clone import Prediction, gold_file
from benchmarks.accuracy.published_predictions.scripts import MAX_TEXT, Outcome
from tilewright.errors import ProblemError
from tilewright.problems.sets.base import json_rows

RECORDS = Path("data", "kbx_corpus", "all_records.jsonl")


def recorded(clone: Path) -> list[tuple[Prediction, Outcome]]:
    """Return each program of the records once for its task and round, with its recorded result.

    A task without a gold file is left out with a line: the records are of an earlier version.
    """
    found: dict[tuple[str, str], tuple[Prediction, Outcome]] = {}
    skipped: list[str] = []
    for where, row in json_rows(clone / RECORDS, skipped):
        for which, round_name in (("before", "from_round"), ("after", "to_round")):
            try:
                result, code = row[which], row[f"{which}_code"]
                file, model = str(row["task_id"]), f"x/{row[round_name]}"
                called, executed = bool(result["call_ok"]), bool(result["exe_ok"])
            except (KeyError, TypeError) as error:
                raise ProblemError(f"{where}: it has another form: {error}") from error
            error_text = str(result.get("error") or "")[-MAX_TEXT:]
            outcome = Outcome(model, file, called, executed, "", error_text, 0.0)
            found[model, file] = Prediction(model, file, str(code)), outcome
    if skipped:
        raise ProblemError(skipped[0])
    absent = {file for _, file in found if not gold_file(clone, file).is_file()}
    for file in sorted(absent):
        print(f"left out: {clone / RECORDS}: no gold file {file} in this version")
    return [found[key] for key in sorted(found) if key[1] not in absent]
