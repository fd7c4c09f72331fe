"""The command line: one file a verb. It holds no logic that Python callers would miss."""

import sys

if sys.platform == "win32":
    # Before the first module that cannot be imported there, so that no trace is shown.
    print("tilewright: error: Windows is not supported; use WSL 2", file=sys.stderr)
    raise SystemExit(4)
