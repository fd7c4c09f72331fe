"""Run `tilewright demo`, and write its verdict table into the pages that show it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/index.md")
BEGIN = "<!-- demo: `make pictures` writes this table from the output of `tilewright demo` -->\n"
END = "<!-- end of demo -->"


def main() -> int:
    """Write the table into both pages; change nothing if a verdict is unexpected."""
    with tempfile.TemporaryDirectory(prefix="tilewright-demo-") as folder:
        command = [sys.executable, "-m", "tilewright", "demo", "--out", folder]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        print(f"tilewright demo exits with {answer.returncode}: no page changes", file=sys.stderr)
        return 1
    # The output has a second table, of a recorded optimisation, after the first empty line.
    table = answer.stdout.partition("\n\n")[0]
    for name in PAGES:
        path = ROOT / name
        path.write_text(with_table(path.read_text(encoding="utf-8"), table), encoding="utf-8")
        print(f"written: {name}")
    return 0


def with_table(page: str, table: str) -> str:
    """Return a page with the table between its two comments replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit("a page has no verdict table between its two comments")
    return f"{before}{BEGIN}\n```text\n{table}\n```\n\n{END}{after}"


def table_of(page: str) -> str:
    """Return the table that a page shows, without the fence around it."""
    block = page.partition(BEGIN)[2].partition(END)[0].strip()
    return block.removeprefix("```text\n").removesuffix("\n```")


if __name__ == "__main__":
    sys.exit(main())
