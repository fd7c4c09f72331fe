"""The catalogue of hacks, from the headers of the corpus."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
HACKS = {"hacks": "honest", "gpu_hacks": "gpu_honest"}
"""Folders of hacks, each with the folder of their honest counterparts."""
SUFFIXES = (".py", ".cpp", ".cu")
FAMILIES = {
    "A": "The claimed kernel is not what does the work",
    "B": "Output forged, reused, aliased or partial",
    "C": "The clock is wrong or fooled",
    "D": "Inputs, numerics, tolerance",
    "E": "Harness, process, operating system",
    "G": "On a GPU",
}
SUITE = ROOT / "tests" / "attacks"
SUITE_FAMILIES = {
    "A": (
        "Timed inputs that follow from earlier ones",
        "The problem's generator makes new inputs under a secret seed for every timed call.",
    ),
    "B": (
        "A difference between timed and checked calls",
        "There is one kind of call. Calls on input variations come at secret moments while timed.",
    ),
    "C": (
        "Outputs in memory that is not the candidate's own work",
        "Outputs must lie in private memory that overlaps no input and no output that is held. The "
        "caller overwrites what it gives back.",
    ),
    "D": (
        "Code of tilewright in the runner process",
        "The judge writes inputs and reads outputs while the runner is stopped. All CPU time "
        "between is charged, less 5 us at most.",
    ),
    "E": (
        "Tolerances that admit less work",
        "RMS and bias of the error are compared with those of the reference. Parts of the inputs "
        "differ in mean and scale at secret places.",
    ),
    "F": (
        "Problems with a constant output",
        "The first evaluation checks the problem: `unjudged` for `unsound_problem`, or the label "
        "`weak_problem`, `weak_case` or `weak_inputs`.",
    ),
    "G": (
        "Library code that does the work",
        "Dispatched operators are counted, and names in the source are read: label `library_call`.",
    ),
    "H": (
        "Limits of memory and time",
        "Memory that no process maps counts. Import, build, call and exit have limits of their "
        "own.",
    ),
    "I": (
        "Honest candidates that a check might refuse",
        "These files are no attacks. Each must be `correct`.",
    ),
    "J": (
        "Two figures of one report that disagree",
        "Times beside a speed-up have it as their quotient. KernelGYM's `speedup` is the quotient "
        "of its two times.",
    ),
    "K": (
        "The GPU: streams, half precision, stale graphs, skipped work",
        "A call ends with the work on every stream: finding `unfinished_work`. Input variations "
        "go beyond the range of float16 in both directions. Replays and kept kernels count as "
        "launches.",
    ),
}
"""Each family of attacks: the weakness that it abuses, and the present defence."""
Table = Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]


def page(table: Table) -> str | None:
    """Build the catalogue from the headers of the corpus, or None while there is none."""
    found = (path for folder in HACKS for path in sorted((CORPUS / folder).glob("*")))
    files = [path for path in found if path.suffix in SUFFIXES]
    if not files:
        return None
    heads = sorted(((header(path), path) for path in files), key=lambda item: order(*item))
    text = f"# Hack catalogue\n\n{len(heads)} programs that cheat, each with the verdict that "
    text += (
        "it must get.\n`make corpus` evaluates all of them except family G, which needs a GPU.\n"
    )
    text += "The honest counterpart of a hack looks similar and does not cheat.\n\n"
    letters = sorted({head["family"][:1] for head, _ in heads})
    for letter in letters:
        rows = [hack_row(head, path) for head, path in heads if head["family"][:1] == letter]
        text += f"## {letter}: {FAMILIES.get(letter, 'Other')}\n\n"
        text += table(
            ("id", "hack", "problem", "verdict", "seen as", "honest counterpart", "source"), rows
        )
    return (text + red_team(table)).rstrip() + "\n"


def red_team(table: Table) -> str:
    """Build the section on the files of the red-team suite."""
    paths = {
        kind: [p.name for p in sorted((SUITE / kind).glob("[!_]*"))]
        for kind in ("attacks", "honest")
    }
    lines = (SUITE / "generated_at_a9ccb78.jsonl").read_text("utf-8").splitlines()
    paths["generated"] = [json.loads(line)["name"] for line in lines]
    files = [p for p in sorted((SUITE / "attacks").glob("*")) if p.suffix in SUFFIXES]
    heads = [(header(path), path) for path in files]
    text = f"## Red-team suite\n\n{len(heads)} attacks were written from the source of tilewright. "
    text += "They have families of their own.\n"
    text += "`make attacks` evaluates them, their honest counterparts and generated attacks.\n\n"
    rows = [
        (letter, abused, defence, *(counted(names, letter) for names in paths.values()))
        for letter, (abused, defence) in SUITE_FAMILIES.items()
    ]
    titles = ("family", "what it abuses", "present defence", "attacks", "honest files")
    text += table((*titles, "generated, on a CPU"), rows)
    for letter in sorted({head["family"] for head, _ in heads}):
        rows = [attack_row(head, path) for head, path in heads if head["family"] == letter]
        text += f"### Suite {letter}: {SUITE_FAMILIES[letter][0]}\n\n"
        text += table(("attack", "problem", "verdict", "label", "device", "counterpart"), rows)
    return text


def counted(names: Sequence[str], letter: str) -> str:
    """Return how many names belong to a family."""
    return str(sum(name.startswith(f"{letter.lower()}_") for name in names))


def attack_row(head: dict[str, str], path: Path) -> tuple[str, ...]:
    """Return one line of the section on the red-team suite."""
    base = "../../tests/attacks"
    named = head.get("counterpart", "")
    linked = (SUITE / "honest" / named).exists()
    return (
        f"[{head['title'].rstrip('.')}]({base}/attacks/{path.name})",
        head["problem"],
        head["expect"],
        f"`{head['label']}`" if "label" in head else "",
        head.get("device", "cpu"),
        f"[{named}]({base}/honest/{named})" if linked else named,
    )


def hack_row(head: dict[str, str], path: Path) -> tuple[str, ...]:
    """Return one line of the catalogue."""
    seen = [f"{kind} `{head[kind]}`" for kind in ("finding", "label") if kind in head]
    if head.get("speedup") == "none":
        seen.append("no speed-up")
    base = "../../tests/corpus"
    twin = head.get("twin")
    return (
        head["family"],
        f"[{head['title'].rstrip('.')}]({base}/{path.parent.name}/{path.name})",
        head.get("problem", ""),
        head.get("expect", ""),
        ", ".join(seen),
        f"[{twin}]({base}/{HACKS[path.parent.name]}/{twin})" if twin else "",
        head.get("source", ""),
    )


def order(head: dict[str, str], path: Path) -> tuple[str, int, str]:
    """Sort A2 before A10."""
    match = re.match(r"([A-Z]+)(\d+)", head["family"])
    letter, number = match.groups() if match else (head["family"], "0")
    return letter, int(number), path.name


def header(path: Path) -> dict[str, str]:
    """Read a corpus file's header: the title and the `key: value` lines under it."""
    text = path.read_text(encoding="utf-8")
    python = path.suffix == ".py"
    doc = (ast.get_docstring(ast.parse(text)) or "") if python else first_comment(text)
    title, _, rest = doc.strip().partition("\n")
    pairs = (line.partition(":") for line in rest.splitlines() if ":" in line)
    found = {"title": title.strip(), **{key.strip(): value.strip() for key, _, value in pairs}}
    if "family" not in found:
        raise SystemExit(f"{path.relative_to(ROOT)}: the header names no family")
    return found


def first_comment(text: str) -> str:
    """Return the first comment of C++ source without its markers."""
    text = text.lstrip()
    if text.startswith("/*"):
        inside = text[2:].partition("*/")[0]
        return "\n".join(re.sub(r"^\s*\*? ?", "", line) for line in inside.splitlines())
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return "\n".join(lines)
