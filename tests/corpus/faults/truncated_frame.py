"""Half of a frame is sent, and then the process waits for ever.

problem: add_relu
expect: failed
reason: timeout
"""

import os
import stat
import time


def add_relu(x, y):
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, (1000).to_bytes(4, "big") + b'{"kind": "res')
        except OSError:
            pass
    time.sleep(1000)
