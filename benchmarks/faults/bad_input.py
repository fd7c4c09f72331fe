"""Bar: bad input gets one clear line and the documented exit code, and changes no file.

Each case runs the real command in a folder that already holds a run. The command must return the
documented exit code. Its stderr has exactly one line `tilewright: error:` that names the mistake,
and no traceback. If the candidate itself is at fault, the command prints a verdict instead of that
line. The folder stays unchanged: no file is lost, and no file is half written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import Bar, finish

LIMIT_S = 120
ERROR = "tilewright: error: "
GOOD = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
CPP = 'extern "C" int softmax() { return 0; }\n'
CUDA = "__global__ void one(float* x) { x[0] = 1; }\n" + CPP
PROBLEM = """import torch

CASES = [{"name": "one", "n": 8}]
ENTRY = "softmax"


def inputs(case, generator):
    return (torch.randn(case["n"], 8, generator=generator),)


def reference(x):
    return torch.softmax(x, -1)
"""
FILES: dict[str, str | bytes] = {
    "good.py": GOOD,
    "broken.py": "def softmax(x:\n    return x\n",
    "prose.py": "Sure! Here is a faster softmax kernel, as you asked.\n",
    "other.py": GOOD.replace("softmax(x)", "other(x)"),
    "empty.py": "",
    "nul.py": "def softmax(x):\n    return x\n\0\n",
    "binary.py": bytes(range(256)) * 4,
    "latin.py": "# caf\xe9\n".encode("latin-1") + GOOD.encode(),
    "library.so": b"\x7fELF" + bytes(400),
    "kernel.cu": CUDA,
    "kernel.cpp": CPP.replace("softmax", "other"),
    "folder/readme.txt": "no source here\n",
    "deep.jsonl": "[" * 100_000 + "\n" + '{"level": 1, "problem_id": Infinity, "code": ""}\n',
    "latin.jsonl": b'{"level": 1, "problem_id": 1, "code": "\xe9"}\n',
    "rows.parquet": b"PAR1 and no more",
    "plain/notes.py": "x = 1\n",
    "half.jsonl": '{"problem": "softmax", "co',
    "torn/events.jsonl": '{"event": "begun"}\n',
    "crashes.py": PROBLEM.replace(
        "    return torch.softmax", "    1 / 0\n    return torch.softmax"
    ),
    "no_inputs.py": PROBLEM.replace("(torch.randn", "(open('/nowhere'), torch.randn"),
    "no_import.py": PROBLEM.replace("import torch", "import torch, no_such_module"),
    "no_cases.py": PROBLEM.replace('[{"name": "one", "n": 8}]', "[]"),
    "computed.py": PROBLEM.replace("[{", "[{'n': n} for n in range(3)] + [{"),
    "bad_vary.py": PROBLEM.replace("ENTRY =", 'VARY = {"sizes": {"n": 3}}\nENTRY ='),
    "not_yaml.yaml": "eval: [unclosed\n",
    "wrong.yaml": "eval: {timing: {min_blocks: many}}\n",
}


@dataclass(frozen=True)
class Case:
    """One command line, its exit code, and the words that its error line must contain."""

    name: str
    args: str
    code: int
    names: str
    verdict: str = ""
    """The verdict that the command prints instead of an error, if the candidate is at fault."""


def on(candidate: str, more: str = "", problem: str = "softmax") -> str:
    """Return the command line that judges a candidate without timing it."""
    return f"eval {candidate} --problem {problem} --set eval.timing.enabled=false {more}".strip()


IMPORTED = "problems import kernelbench --from deep.jsonl --revision "
CASES = (
    Case("missing file", on("nope.py"), 2, "nope.py"),
    Case("missing folder", on("no/where"), 2, "no/where"),
    Case("not Python", on("broken.py"), 1, "syntax_error", "failed"),
    Case("prose instead of source", on("prose.py"), 1, "syntax_error", "failed"),
    Case("a NUL in the source", on("nul.py"), 1, "syntax_error", "failed"),
    Case("no entry point", on("other.py"), 2, "softmax"),
    Case("no entry point in C++", on("kernel.cpp"), 2, "softmax"),
    Case("an entry point that is not there", on("good.py", "--entry nope"), 2, "nope"),
    Case("empty file", on("empty.py"), 2, "empty.py"),
    Case("nothing on stdin", on("-"), 2, "candidate"),
    Case("binary file", on("binary.py"), 2, "binary.py"),
    Case("text that is not UTF-8", on("latin.py"), 2, "latin.py"),
    Case("shared library", on("library.so"), 2, "library.so"),
    Case("folder without sources", on("folder"), 2, "folder"),
    Case("unknown language", on("good.py", "--language klingon"), 2, "klingon"),
    Case("candidate for a device that is not there", on("kernel.cu"), 4, "no_device", "unjudged"),
    Case("reference that crashes", on("good.py", problem="crashes.py"), 3, "ZeroDivisionError"),
    Case("inputs that crash", on("good.py", problem="no_inputs.py"), 3, "/nowhere"),
    Case("problem that cannot be imported", on("good.py", problem="no_import.py"), 3, "no_such"),
    Case("problem that is no problem", on("good.py", problem="good.py"), 3, "good.py"),
    Case("problem that is not Python", on("good.py", problem="broken.py"), 3, "broken.py"),
    Case("problem that is binary", on("good.py", problem="binary.py"), 3, "binary.py"),
    Case("problem without cases", on("good.py", problem="no_cases.py"), 3, "CASES"),
    Case("computed cases", on("good.py", problem="computed.py"), 3, "CASES"),
    Case("sizes that are no ranges", on("good.py", problem="bad_vary.py"), 3, "bad_vary.py"),
    Case("unknown problem", on("good.py", problem="no_such_problem"), 3, "no_such_problem"),
    Case("no problem named", "eval good.py", 2, "--problem"),
    Case("no candidate named", "eval --problem softmax", 2, "candidate"),
    Case("replay and a candidate", "eval good.py --from-report run", 2, "--from-report"),
    Case(
        "replay and a setting",
        "eval --from-report run --set eval.protocol=official",
        2,
        "--from-report",
    ),
    Case("JSON and watch", on("good.py", "--json --watch"), 2, "--watch"),
    Case("watch and stdin", on("-", "--watch"), 2, "--watch"),
    Case("a flag and --set", on("good.py", "--reuse --set eval.reuse=true"), 2, "--reuse"),
    Case(
        "a minimum speed-up that does not parse",
        on("good.py", "--min-speedup faster"),
        2,
        "--min-speedup",
    ),
    Case(
        "a minimum speed-up of zero", on("good.py", "--min-speedup speedup>=0"), 2, "--min-speedup"
    ),
    Case(
        "a minimum speed-up without timing",
        on("good.py", "--min-speedup speedup>=1"),
        2,
        "--min-speedup",
    ),
    Case("unknown setting", on("good.py", "--set eval.nope=1"), 2, "eval.nope"),
    Case("a setting without a value", on("good.py", "--set eval.reuse"), 2, "eval.reuse"),
    Case(
        "a setting of another type",
        on("good.py", "--set eval.limits.call_timeout_s=x"),
        2,
        "call_timeout_s",
    ),
    Case("settings that are not YAML", on("good.py", "--config not_yaml.yaml"), 2, "not_yaml"),
    Case("settings of another type", on("good.py", "--config wrong.yaml"), 2, "min_blocks"),
    Case("missing settings", on("good.py", "--config nope.yaml"), 2, "nope.yaml"),
    Case("unknown flag", on("good.py", "--fast"), 2, "--fast"),
    Case("unknown protocol", on("good.py", "--protocol lax"), 2, "lax"),
    Case("unknown device", on("good.py", "--device tpu"), 2, "tpu"),
    Case("a device that is not there", on("good.py", "--device cuda"), 4, "cuda"),
    Case("missing import folder", on("good.py", "--python-path nope"), 2, "nope"),
    Case("missing baseline", on("good.py", "--baseline nope.py"), 2, "nope.py"),
    Case("baseline that does not parse", on("good.py", "--baseline broken.py"), 2, "broken.py"),
    Case("a home that cannot be made", on("good.py", "--set home=good.py/home"), 2, "home"),
    Case("a home of an unknown user", on("good.py", "--set home=~nobody-here/x"), 2, "home"),
    Case("runs below a file", on("good.py", "--out good.py/runs"), 2, "good.py/runs"),
    Case("read-only folder", on("good.py", "--out read-only"), 2, "read-only"),
    Case("no space for a run", on("good.py", "--out full"), 2, "space"),
    Case("no space for the report", on("good.py", "--out almost-full"), 2, "space"),
    Case("explain nothing", "explain nope", 6, "nope"),
    Case("explain a damaged report", "explain damaged", 6, "damaged"),
    Case("explain an incomplete report", "explain partial", 6, "request"),
    Case("explain a newer report", "explain newer", 6, "version 99"),
    Case("explain a binary file", "explain binary.py", 6, "binary.py"),
    Case("replay nothing", "eval --from-report nope", 6, "nope"),
    Case("replay a damaged report", "eval --from-report damaged", 6, "damaged"),
    Case("replay a newer report", "eval --from-report newer/report.json", 6, "version 99"),
    Case("show an unknown problem", "problems show nope", 3, "nope"),
    Case("unknown command", "judge good.py", 2, "judge"),
    Case("bench without candidates", "bench softmax", 2, "needs PROBLEMS and --candidates"),
    Case("bench an unknown problem", "bench nope --candidates good.py", 3, "nope"),
    Case("bench a set that is not here", "bench kernelbench --candidates good.py", 3, "import"),
    Case("bench from nowhere", "bench softmax --candidates nowhere", 2, "nowhere"),
    Case("bench half a line", "bench softmax --candidates half.jsonl", 2, "no candidate for"),
    Case("bench one file for two", "bench bundled --candidates good.py", 2, "one problem"),
    Case("bench a wrong protocol", "bench softmax --candidates good.py --protocol x", 2, "'x'"),
    Case("resume what is no run", "bench --resume folder", 6, "no run"),
    Case("resume a damaged run", "bench --resume torn", 6, "events.jsonl:1"),
    Case("resume with other candidates", "bench --resume torn --candidates good.py", 2, "leave"),
    Case("report what is no run", "report run", 6, "a run of eval"),
    Case("report a damaged run", "report torn", 6, "events.jsonl:1"),
    Case("import an unknown set", "problems import nope", 3, "nope"),
    Case("import from nowhere", "problems import kernelbench --from nowhere", 3, "nowhere"),
    Case("import from an empty clone", "problems import kernelbench --from folder", 3, "folder"),
    Case("import what is not on the Hub", "problems import kernelbenchx", 3, "git clone https://"),
    Case("list what is not on the Hub", "problems list tritonbench", 3, "git clone https://"),
    Case("import too deep", "problems import kernelbench --from deep.jsonl", 3, "deep.jsonl:1"),
    Case("import no UTF-8", "problems import kernelbench --from latin.jsonl", 3, "latin.jsonl:1"),
    Case("import no parquet", "problems import kernelbench --from rows.parquet", 3, "rows.parquet"),
    Case("list rows too deep", "problems list deep.jsonl", 3, "deep.jsonl:1"),
    Case("list no parquet", "problems list rows.parquet", 3, "rows.parquet: not parquet"),
    Case("list a folder without problems", "problems list plain", 3, "notes.py: not a problem"),
    Case("list an empty folder", "problems list folder", 3, "folder: no problem in it"),
    Case("a revision as long as a page", f"{IMPORTED}{'x' * 300}", 3, "--revision"),
    Case("show an address of 5000 letters", f"problems show {'x' * 5000}", 3, "no problem 'xxx"),
    Case("lint an unknown problem", "problems lint nope", 3, "nope"),
)


class Workplace:
    """A folder with bad files, a finished run and damaged reports. Lifetime: the bar."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = self.run(on("good.py", "--out first"))
        if done.returncode:
            raise RuntimeError(f"the good candidate exits with {done.returncode}: {done.stderr}")
        made = next((root / "first").iterdir())
        made.rename(root / "run")
        (root / "first").rmdir()
        report = json.loads((root / "run" / "report.json").read_text(encoding="utf-8"))
        self._report("newer", json.dumps({**report, "schema_version": 99, "more": {}}))
        self._report("partial", json.dumps({k: v for k, v in report.items() if k != "request"}))
        self._report("damaged", json.dumps(report)[:1000])

    def _report(self, name: str, text: str) -> None:
        (self.root / name).mkdir()
        (self.root / name / "report.json").write_text(text, encoding="utf-8")

    def run(self, args: str) -> subprocess.CompletedProcess[str]:
        """Run the command with nothing on stdin."""
        environment = {**os.environ, "TILEWRIGHT_HOME": str(self.root / "home"), "COLUMNS": "120"}
        return subprocess.run(
            [sys.executable, "-m", "tilewright", *args.split()],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )

    def digests(self) -> dict[str, str]:
        """Return the digest of every file, and every folder, outside of the home."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if name.split("/")[0] != "home":
                found[name] = digest(path) if path.is_file() else "folder"
        return found


def digest(path: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def misses(place: Workplace, case: Case) -> list[str]:
    """Run one case; return its deviations from the wanted result."""
    before = place.digests()
    try:
        done = place.run(case.args)
    except subprocess.TimeoutExpired:
        return [f"no end within {LIMIT_S} s"]
    wrong = []
    if done.returncode != case.code:
        wrong.append(f"exit code {done.returncode}, wanted {case.code}")
    errors = [line for line in done.stderr.splitlines() if line.startswith(ERROR)]
    if case.verdict:
        if errors or case.verdict not in done.stdout or case.names not in done.stdout:
            wrong.append(f"wanted {case.verdict}: {case.names}, got {errors} {done.stdout[:200]!r}")
    elif len(errors) != 1 or case.names not in errors[0]:
        wrong.append(f"wanted one line about {case.names!r}, got {done.stderr[-400:]!r}")
    if "Traceback (most recent call last)" in done.stdout + done.stderr:
        wrong.append("a traceback")
    after = place.digests()
    lost = [name for name, each in before.items() if after.get(name) != each]
    if lost:
        wrong.append(f"lost or changed: {lost[:3]}")
    made = [name for name, each in after.items() if name not in before and each != "folder"]
    if made and not (case.verdict or "almost-full" in case.args):
        wrong.append(f"left behind: {made[:3]}")
    return wrong


@contextmanager
def mounted(root: Path) -> Iterator[set[str]]:
    """Mount the small and the read-only file systems; yield the names of those that failed.

    Users other than root get a folder without write permission as the read-only one.
    """
    wanted = {"read-only": "ro,size=4k", "full": "size=4k", "almost-full": "size=16k"}
    missing, done = set(), []
    for name, options in wanted.items():
        folder = root / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tilewright", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True)
            done.append(folder)
        except (OSError, subprocess.CalledProcessError):
            missing.add(name)
    if (root / "full") in done:
        (root / "full" / "ballast").write_bytes(bytes(4096))
    if "read-only" in missing and os.geteuid() != 0:
        (root / "read-only").chmod(0o555)
        missing.discard("read-only")
    try:
        yield missing
    finally:
        for folder in done:
            subprocess.run(["umount", str(folder)], check=False, capture_output=True)


def run(only: str = "") -> list[Bar]:
    """Run every case whose name contains `only`, print a line each, and return the bar."""
    missed, skipped, ran = [], [], 0
    root = Path(tempfile.mkdtemp(prefix="tilewright-bad-input-"))
    try:
        place = Workplace(root)
        with mounted(root) as absent:
            for case in CASES:
                if only not in case.name:
                    continue
                if any(f"--out {name}" in case.args for name in absent):
                    skipped.append(case.name)
                    print(
                        f"skip {case.name}: this machine has no file system of that kind",
                        flush=True,
                    )
                    continue
                start = time.monotonic()
                wrong = misses(place, case)
                ran += 1
                missed += [case.name] if wrong else []
                mark = "MISS" if wrong else "ok  "
                seconds = time.monotonic() - start
                print(f"{mark} {case.name:42} {seconds:5.1f} s  {'; '.join(wrong)}", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    seen = f"{ran - len(missed)} of {ran}" + (f", {len(skipped)} skipped" if skipped else "")
    details = {"missed": missed, "skipped": skipped}
    return [Bar("bad input", "one line, right code, nothing lost", seen, not missed, details)]


if __name__ == "__main__":
    sys.exit(finish(run(sys.argv[1] if len(sys.argv) > 1 else "")))
