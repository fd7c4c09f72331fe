"""Windows is refused before the first module that cannot be imported there."""

from __future__ import annotations

import subprocess
import sys


def test_windows_gets_one_line():
    code = "import sys; sys.platform = 'win32'; import tilewright.cli.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    line = "tilewright: error: Windows is not supported; use WSL 2\n"
    assert (done.returncode, done.stdout, done.stderr) == (4, "", line)
