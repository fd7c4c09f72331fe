"""The supervisor's process: requests in, progress and reports out, over one socket.

It has no torch and holds no tensor. It ends when its client is gone, and everything of ours ends
with it. Under a warm host it serves one client after another, each over a socket of its own.

The forkserver imports torch for seconds. So it starts before this process imports the rest.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
from pathlib import Path

from tilewright.evaluator.processes.forkserver_client import Forkserver
from tilewright.wire.frames import ChannelClosed


def main(argv: list[str] | None = None) -> None:
    """Serve one client until it closes its end, or the clients of a warm host until that ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, help="socket of the only client")
    parser.add_argument("--clients", type=int, help="socket over which a warm host sends clients")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--cores", default="", help="to use, numbers with commas between them")
    parser.add_argument("--forkserver", type=json.loads, help="a plan of the forkserver")
    parser.add_argument("--release-s", type=float, default=math.inf)
    options = parser.parse_args(argv)
    if options.cores:
        os.sched_setaffinity(0, [int(core) for core in options.cores.split(",")])
    available = list(os.sched_getaffinity(0))
    begun = [_begun(**options.forkserver)] if options.forkserver else []
    requests = importlib.import_module("tilewright.evaluator.client_requests")
    served = requests.Served(options.home, available, options.release_s, begun)
    try:
        if options.clients is None:
            requests.serve(served, options.channel)
        else:
            requests.serve_clients(served, options.clients)
    except (ChannelClosed, requests.ClientGone):
        pass
    finally:
        served.close()


def _begun(environment: dict[str, str], roles: list[str], cores: list[int]) -> Forkserver:
    """Return the forkserver of a `ForkserverPlan`, which imports torch on these cores by now."""
    os.sched_setaffinity(0, cores)
    made = Forkserver(environment, tuple(roles))
    made.begin()
    return made


if __name__ == "__main__":
    main()
