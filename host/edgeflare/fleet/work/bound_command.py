"""`python -m edgeflare.fleet.work.bound_command PARENT ARGUMENTS`: a command that ends with PARENT.

A worker of a cluster is killed with its host's daemon or its driver, and a command that it started
would go on and keep the device. So the kernel kills it once its parent is gone. What it has found
is in the last backup, and its device is free for the next attempt at once. Ray's processes block
SIGINT, and what they start inherits that; a command must hear it.
"""

from __future__ import annotations

import runpy
import signal
import sys

from edgeflare.parent_process import end_with_parent


def run_bound() -> None:
    """Run `edgeflare` with the arguments behind the parent's process id."""
    parent = int(sys.argv[1])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_with_parent(parent)
    sys.argv = ["edgeflare", *sys.argv[2:]]
    runpy.run_module("edgeflare", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run_bound()
