"""An agent whose workers run a broken runtime, as a device of a folder's own profiles."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

DOUBLE = "double"
"""The name of the profile."""


@contextmanager
def faulty_agent(folder: Path, launcher: Sequence[str], settings: str = "") -> Iterator[str]:
    """Start an agent, and yield the name of its profile in `folder/device_profiles`.

    Args:
        folder: what the agent keeps is there, too.
        launcher: the command that starts Python for its workers.
        settings: further lines of the profile.

    Raises:
        OSError: the agent ended at once.

    """
    profiles = folder / "device_profiles"
    profiles.mkdir(exist_ok=True)
    command = [
        *(sys.executable, "-m", "edgeflare_agent", "--port", "0", "--exit-with-stdin"),
        *("--store", str(folder / "store"), "--launcher", " ".join(launcher)),
        *("--device", str(folder)),
    ]
    with (
        open(folder / "ready", "w+") as ready,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=ready, stderr=subprocess.DEVNULL
        ) as agent,
    ):
        # Leaving the block closes its stdin, which ends it.
        (profiles / f"{DOUBLE}.toml").write_text(
            f'transport = "address"\naddress = "127.0.0.1:{_port(agent, folder / "ready")}"\n'
            f"{settings}\n"
        )
        yield DOUBLE


def _port(agent: subprocess.Popen[bytes], ready: Path) -> int:
    """Wait until an agent is ready, and return its port."""
    while not ready.read_text().endswith("\n"):
        if agent.poll() is not None:
            raise OSError(f"the agent ended with {agent.returncode}")
        time.sleep(0.1)
    return int(json.loads(ready.read_text())["port"])
