"""Whether `edgeflare conform` raises false alarms, and how many models it runs in a second.

    python benchmarks/conform_alarms.py [--time-limit 20m]

Two runs. On `emulated-xnnpack`, whose kernels are the twin's, nothing may count. On
`emulated-builtin` what a first run finds is written as accepted.toml, and a second one with another
run seed may count one finding more at most: a fault that is rare, or a condition that was drawn too
tightly.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", default="20m", help="of each run (default: 20m)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeflare-alarms-") as name:
        folder = Path(name)
        _said("equal kernels", _run(folder / "equal", options.time_limit, "emulated-xnnpack", 1))
        _said("first", _run(folder / "first", options.time_limit, "emulated-builtin", 1))
        command = [sys.executable, "-m", "edgeflare", "report", str(folder / "first"), "--accepted"]
        subprocess.run(command, check=True, capture_output=True)
        names = str(folder / "first" / "accepted.toml")
        again = _run(
            folder / "second", options.time_limit, "emulated-builtin", 2, "--accepted", names
        )
        _said("second, with the first's accepted.toml", again)


def _run(out: Path, time_limit: str, device: str, rng_seed: int, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "edgeflare", "conform", "--device", device, "--quiet"]
    command += ["--time-limit", time_limit, "--rng-seed", str(rng_seed), "--out", str(out), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended in {done.returncode}: {done.stderr}")
    return dict(json.loads((out / "conform.json").read_bytes()))


def _said(name: str, document: dict[str, Any]) -> None:
    counted = [one for one in document["findings"] if one["counted"] and one["accepted"] is None]
    rate = document["models"] / document["seconds"]
    print(
        f"{name}: {len(counted)} count, of {len(document['findings'])} findings; "
        f"{document['models']:,} models, {rate:.0f} in a second, shrinking included"
    )
    for key in ("cells", "buckets", "pairs"):
        figure = document["coverage"][key]
        print(f"  {key}: {figure['covered']:,} of {figure['total']:,}")
    for one in counted:
        print(f"  {one['operator']} {one['type']}: {one['symptom']}, {', '.join(one['condition'])}")


if __name__ == "__main__":
    main()
