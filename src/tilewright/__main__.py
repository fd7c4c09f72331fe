"""`python -m tilewright`: the command without an installed script.

Python puts the folder that one stands in before all others then, and in ours candidates lie: one
called `json.py` would run in the place of Python's own. So it begins again without that folder.
"""

import os
import sys

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    if not sys.flags.safe_path and os.getcwd() != HOME:
        os.execv(sys.executable, [sys.executable, "-P", "-m", "tilewright", *sys.argv[1:]])
    from tilewright.cli.main import main

    main()
