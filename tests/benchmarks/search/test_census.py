"""The census of a space: real evaluations, parts, resuming, and searches that use its answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.search import census
from tests.space_programs import bad_row, correct_row, header_of, write_census
from tilewright.records.census import line_of, read_census, source_digest
from tilewright.spaces import SPACES
from tilewright.spaces.space import PROBLEMS, programs, source

CPP = SPACES["cpp_matmul"]
PROPOSERS = PROBLEMS.with_name("proposers")
PARTS = 140
"""Each part has three programs."""


def quality(knobs):
    """Return an artificial speed-up with one best program."""
    tile = min(knobs["rows"] * knobs["cols"], 256) / 256
    form = {"dots": 0.05, "loops": 0.6, "vectors": 1.0}[knobs["form"]]
    return form * (0.2 + tile) / knobs["threads"]


def rows_of(every):
    wrong = {"verdict": "incorrect", "kind": "values", "case": "layer", "message": "at [0, 0]"}
    for knobs in every:
        bad = knobs["rows"] * knobs["cols"] > 256 or "bfloat16" in knobs.values()
        yield bad_row(CPP, knobs, wrong) if bad else correct_row(CPP, knobs, quality(knobs))


def verdicts_of(path):
    found = read_census(path).rows.values()
    return [{**own[0].knobs, "verdict": own[0].outcome.verdict} for own in found]


def expected(knobs):
    if knobs["rows"] * knobs["cols"] > 256:
        return "failed"
    flawed = {"bfloat16", "ignored", "kept", "once"} & set(knobs.values())
    return "incorrect" if flawed else "correct"


def part_with(verdicts):
    """Return a part whose programs should get these verdicts."""
    for number in range(PARTS):
        found = [expected(knobs) for knobs in census.order(CPP, (number, PARTS))]
        if sorted(found) == sorted(verdicts):
            return number
    raise AssertionError(verdicts)


@pytest.mark.slow
def test_three_programs_are_judged_and_a_killed_census_is_continued(tmp_path):
    out, part = tmp_path / "part.jsonl", part_with(["correct", "failed", "incorrect"])
    quick = ("max_s=0.2", "max_problem_s=0.2", "min_blocks=4")
    command = ["cpp_matmul", "--out", str(out), "--part", f"{part}/{PARTS}"]
    for setting in (f"home={tmp_path}", *(f"eval.timing.{text}" for text in quick)):
        command += ["--set", setting]
    assert census.main([*command, "--seconds", "0"]) == 3
    assert census.main(command) == 0
    first = verdicts_of(out)
    assert len(first) == 3
    assert [item["verdict"] for item in first] == [expected(item) for item in first]
    header = read_census(out).header
    assert (header.programs, header.part, header.method) == (420, (part, PARTS), "host_clock")
    # A kill in the middle of a line loses that line alone.
    out.write_text(out.read_text()[:-40])
    assert len(verdicts_of(out)) == 2
    assert census.main(command) == 0
    assert verdicts_of(out) == first


def test_parts_share_the_programs_in_one_random_order():
    whole = census.order(CPP)
    parts = [census.order(CPP, (number, 4)) for number in range(4)]
    assert sorted(map(str, whole)) == sorted(map(str, programs(CPP)))
    assert [parts[number % 4][number // 4] for number in range(len(whole))] == whole
    assert whole != programs(CPP)


def test_the_fastest_tenth_gets_three_further_trials(tmp_path):
    every = census.order(CPP)
    rows = list(rows_of(every))
    path = write_census(tmp_path / "c.jsonl", CPP, rows[:-1])
    kept = census.CensusFile(path, CPP, (0, 1))
    assert census.waiting(CPP, (0, 1), kept) == every[-1:]
    path.write_text(path.read_text() + line_of(rows[-1]))
    kept = census.CensusFile(path, CPP, (0, 1))
    due = census.waiting(CPP, (0, 1), kept)
    correct = [row for row in rows if row.outcome.verdict == "correct"]
    assert len(due) == 3 * round(len(correct) / 10)
    slowest = min(quality(knobs) for knobs in due)
    chosen = {source_digest(source(CPP, knobs)) for knobs in due}
    assert all(row.speedup <= slowest for row in correct if row.program not in chosen)
    assert "420 of 420 programs" in kept.summary()


def test_a_disturbed_trial_is_judged_again(tmp_path):
    rows, every = list(rows_of(census.order(CPP))), census.order(CPP)
    place = next(n for n, row in enumerate(rows) if row.speedup is not None)
    rows[place] = correct_row(CPP, every[place], 1.0, error=0.4)
    path = write_census(tmp_path / "c.jsonl", CPP, rows)
    kept = census.CensusFile(path, CPP, (0, 1))
    assert kept.forget(0.15) == 1
    assert census.waiting(CPP, (0, 1), kept) == [every[place]]
    again = read_census(path)
    assert again.header == header_of(CPP, len(rows))
    assert [row for own in again.rows.values() for row in own] == rows[:place] + rows[place + 1 :]
    assert kept.forget(0.15) == 0


def test_a_file_of_another_part_is_refused(tmp_path):
    path = write_census(tmp_path / "c.jsonl", CPP, [], programs=420)
    with pytest.raises(SystemExit, match="another space or part"):
        census.CensusFile(path, CPP, (1, 4))


def test_parts_are_joined_and_a_missing_one_is_named(tmp_path):
    paths, rows = [], list(rows_of(census.order(CPP)))
    for number in range(3):
        header = header_of(CPP, len(rows)).model_copy(update={"part": (number, 3)})
        paths.append(tmp_path / f"{number}.jsonl")
        paths[-1].write_text(line_of(header) + "".join(map(line_of, rows[number::3])))
    out = tmp_path / "whole.jsonl.gz"
    merge = ["cpp_matmul", "--out", str(out), "--merge"]
    assert census.main([*merge, *map(str, paths)]) == 0
    joined = read_census(out)
    assert joined.header.part == (0, 1)
    assert joined.rows == {row.program: (row,) for row in rows}
    with pytest.raises(SystemExit, match=r"parts \[0, 2\] of 3"):
        census.main([*merge, str(paths[0]), str(paths[2])])


def optimize(folder: Path, path: Path, proposer: str, *more: str) -> dict:
    command = [sys.executable, "-m", "tilewright", "optimize", "spaces/cpp_matmul", "--json"]
    command += ["--model", f"scripted:{PROPOSERS / proposer}.py", "--strategy", "greedy"]
    settings = (f"executor=census:{path}", f"home={folder / 'home'}", f"runs={folder / 'runs'}")
    for setting in (*settings, "loop.max_concurrency=1"):
        command += ["--set", setting]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_search_climbs_on_a_census_without_a_device(tmp_path):
    path = write_census(tmp_path / "c.jsonl", CPP, list(rows_of(programs(CPP))))
    found = optimize(tmp_path / "a", path, "blind", "--turns", "60")
    assert found["turns"] == 60
    assert found["spent"]["device_s"] > 20, "each judged program costs its recorded seconds"
    best = found["winners"]["spaces/cpp_matmul"]
    assert best["verdict"] == "correct"
    assert best["speedup"] > 5 * quality(CPP.start)
    again = optimize(tmp_path / "b", path, "blind", "--turns", "60")
    assert again["winners"]["spaces/cpp_matmul"]["speedup"] == best["speedup"]


def bench(folder: Path, path: Path) -> list[str]:
    words = ["spaces/cpp_matmul", "--model", f"scripted:{PROPOSERS / 'reader.py'}"]
    words += ["--strategy", "polca,greedy+race", "--turns", "30", "--out", str(folder / "runs")]
    settings = ("order=asked", "final_trials=2", "options.polca.candidates=2")
    words += [part for item in settings for part in ("--set", f"loop.{item}")]
    words += ["--set", f"executor=census:{path}", "--set", f"home={folder / 'home'}"]
    return [sys.executable, "-m", "tilewright", "bench", *words]


def events_of(folder: Path) -> list[dict]:
    """Return the events of the only run of a folder, without wall times."""
    (log,) = (folder / "runs").glob("*/events.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for reply in (line.get("turn", {}).get("reply") for line in lines):
        if reply:
            reply.pop("seconds")
    return lines


def test_a_killed_comparison_continues_as_if_nothing_had_happened(tmp_path):
    path = write_census(tmp_path / "c.jsonl", CPP, list(rows_of(programs(CPP))))
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    subprocess.run(bench(calm, path), capture_output=True, check=True)
    process = subprocess.Popen(
        bench(killed, path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        logs = list((killed / "runs").glob("*/events.jsonl"))
        if logs and logs[0].read_text().count("\n") > 40:
            process.kill()
        time.sleep(0.005)
    assert process.wait() == -9, "it ended before it was killed"
    (run,) = (killed / "runs").iterdir()
    before = len(events_of(killed)) if (run / "events.jsonl").read_text().endswith("\n") else None
    command = [sys.executable, "-m", "tilewright", "bench", "--resume", str(run)]
    subprocess.run(command, capture_output=True, check=True)
    assert events_of(killed) == events_of(calm)
    assert before is None or before < len(events_of(killed))
