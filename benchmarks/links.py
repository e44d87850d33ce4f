"""What a link costs: a batch over it, against the time that the device itself was computing.

    python benchmarks/links.py DEVICE...       (adb://SERIAL, ssh://HOST, emulated-builtin)

For each device: seconds to open it when the agent is already there, and milliseconds for one batch
of 32 inputs of the example's compressed model, one batch after the other with none under way. What
the device did not compute is the link's: both ends' gRPC, and all that carries it. A loopback agent
beside the device, such as emulated-builtin, says how much of it is gRPC's own. Medians, and the
95th percentile.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profile

MODEL = Path(__file__).parents[1] / "examples" / "fashion_lenet4" / "compressed.tflite"
INPUTS = 32


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("devices", nargs="+", metavar="DEVICE")
    parser.add_argument("--batches", type=int, default=300)
    arguments = parser.parse_args()
    print(f"{INPUTS} inputs a batch, {arguments.batches} batches, {os.cpu_count()} cores\n")
    print("| device | open s | batch ms | computing ms | link ms | link ms, 95 % | load before |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for name in arguments.devices:
        load = os.getloadavg()[0]
        opened, batch, busy = measure(name, arguments.batches)
        link = batch - busy
        print(
            f"| {name} | {opened:.1f} | {np.median(batch):.1f} | {np.median(busy):.1f} "
            f"| {np.median(link):.1f} | {np.percentile(link, 95):.1f} | {load:.1f} |",
            flush=True,
        )


def measure(name: str, batches: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return seconds to open a device, and milliseconds of each batch: in all, and computing."""
    profile = find_profile(name)
    connect(profile).close()  # from now on the agent is there
    began = time.monotonic()
    with connect(profile) as device:
        opened = time.monotonic() - began
        session = device.open(MODEL)
        tensor = session.signature.input
        shape = (INPUTS, *tensor.shape[1:])
        inputs = np.random.default_rng(0).integers(-128, 128, shape).astype(tensor.dtype)
        session.submit(inputs).result()
        times = []
        for _ in range(batches):
            began = time.monotonic()
            answered = session.submit(inputs).result()
            times.append((time.monotonic() - began, answered.busy_seconds))
    batch, busy = 1000 * np.array(times).T
    return opened, batch, busy


if __name__ == "__main__":
    main()
