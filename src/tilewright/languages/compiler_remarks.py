"""Remarks of g++ about the loops of a candidate: vectorized, or why not.

The lines come from the sandbox in which a candidate was built, so they are untrusted text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilewright.languages.cpp_loops import innermost_loop_lines
from tilewright.records import LoopRemark

FLAG = "-fopt-info-vec-missed-optimized="
"""The flag of g++ that writes remarks to the file named after it."""
MAX_REMARKS = 20
MAX_REASON = 120
"""Most loops of a report, and most characters of a reason."""
_LINE = re.compile(r"^([^:\n]{1,200}):(\d{1,7}):\d{1,7}: (missed|optimized): +(.*)$")
_WIDTH = re.compile(r"loop vectorized using (\d{1,4}) byte vectors")
_REFUSED = "not vectorized: "


def loop_remarks(text: str, sources: Mapping[str, str]) -> tuple[LoopRemark, ...]:
    """Return the remarks about innermost loops of `sources` (texts by path), by file and line.

    A loop that is vectorized with several widths has the largest one, and no reason.
    """
    if not text:
        return ()
    loops = {path: innermost_loop_lines(source) for path, source in sources.items()}
    widths: dict[tuple[str, int], int] = {}
    reasons: dict[tuple[str, int], str] = {}
    for line in text.splitlines():
        found = _LINE.match(line)
        loop = loops.get(found[1], {}).get(int(found[2])) if found else None
        if found is None or loop is None:
            continue
        place, said = (found[1], loop), found[4].strip()
        if width := _WIDTH.match(said):
            widths[place] = max(int(width[1]), widths.get(place, 0))
        elif said.startswith(_REFUSED):
            # Later reasons are those of narrower vectors.
            reasons.setdefault(place, said.removeprefix(_REFUSED)[:MAX_REASON])
    places = sorted({*widths, *reasons})[:MAX_REMARKS]
    return tuple(
        LoopRemark(
            path=path,
            line=line,
            vector_bytes=widths.get((path, line)),
            reason="" if (path, line) in widths else reasons[path, line],
        )
        for path, line in places
    )
