"""`python -m tilewright`: the command without an installed script.

With `-m`, Python imports from the current folder before all others, and candidates may lie there.
A candidate called `json.py` would run in the place of Python's own module. So the command starts
again without that folder.
"""

import os
import sys

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    if not sys.flags.safe_path and os.getcwd() != HOME:
        os.execv(sys.executable, [sys.executable, "-P", "-m", "tilewright", *sys.argv[1:]])
    from tilewright.cli.main import main

    main()
