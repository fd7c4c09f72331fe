"""Files for wrong commands: sources, settings and run folders, each with one fault."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.faults.bad_input import GOOD, PROBLEM
from tests.conventions.tree import ROOT

MANY = 1001
"""One more than the entries that a candidate's folder may have."""
FILES: dict[str, str | bytes] = {
    "good.py": GOOD,
    "empty.py": "",
    "broken.py": "def softmax(x:\n    return x\n",
    "latin.py": b"# caf\xe9\n" + GOOD.encode(),
    "library.so": b"\x7fELF" + bytes(12) + b"\x90",
    "plain/readme.txt": "no source here\n",
    "no_cases.py": PROBLEM.replace('[{"name": "one", "n": 8}]', "[]"),
    "no_key.py": PROBLEM.replace('case["n"]', 'case["m"]'),
    "crashes.py": PROBLEM.replace("return torch.softmax(x, -1)", "return 1 / 0"),
    "half.jsonl": '{"problem": "softmax", "co',
    "latin.jsonl": b'{"level": 1, "problem_id": 1, "code": "\xe9"}\n',
    "not_yaml.yaml": "eval: [unclosed\n",
    "list.yaml": "- eval\n",
    "wrong.yaml": "eval: {timing: {min_blocks: many}}\n",
    "train.yaml": "model: {path: m}\n",
    "wrong_train.yaml": "modle: {path: m}\n",
    "torn/events.jsonl": '{"event": "begun"}\n',
    "torn/reports/readme.txt": "",
}


def write_bad_files(folder: Path) -> None:
    """Write all of them into a folder."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "huge").mkdir()
    for number in range(MANY):
        (folder / "huge" / f"{number}.txt").touch()
    stored = ROOT / "tests" / "golden" / "v1"
    report = json.loads((stored / "eval_correct.json").read_text())
    incomplete = {key: value for key, value in report.items() if key != "request"}
    for name, text in {
        "one": json.dumps(report),
        "newer": json.dumps({**report, "schema_version": 99}),
        "partial": json.dumps(incomplete),
        "damaged": json.dumps(report)[:1000],
    }.items():
        (folder / name).mkdir()
        (folder / name / "report.json").write_text(text)
    (folder / "later").mkdir()
    events = (stored / "bench" / "events.jsonl").read_text().splitlines()
    begun = {**json.loads(events[0]), "schema_version": 99}
    (folder / "later" / "events.jsonl").write_text(json.dumps(begun) + "\n")
