"""How many models `edgeflare conform` runs in a second, beside what link and device allow.

    python benchmarks/conform_speed.py DEVICE [--models 4096] [--time-limit 5m] [--rng-seed 0]

What they allow is measured first, on the device alone: models that a run would draw are uploaded,
loaded and invoked, drawn and written beforehand and not judged. Once all of them, which includes
the search for those that crash, hang or are refused; once more those that answer, which is less
than a run that looks for the others can do with. A conformance run draws its models, has three
kernel sets of the host run them besides, judges, learns conditions and shrinks. All on a quiet
machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from edgeflare.conform.conformance_arms import open_conformance
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import DraftOutcome
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.rounds.conform_rounds import ROUND_MODELS
from edgeflare.conform.rounds.draft_verdict import posed
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.trust import granted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device")
    parser.add_argument("--models", type=int, default=4096, help="to measure the limit by")
    parser.add_argument("--time-limit", default="5m", help="of the conformance run (default: 5m)")
    parser.add_argument("--rng-seed", type=int, default=0)
    options = parser.parse_args()
    limits = allowed_rates(options.device, drawn(options.models, options.rng_seed))
    for which, limit in limits.items():
        print(f"the device alone, {which}: {limit:.0f} models in a second", flush=True)
    rate = rate_of_a_run(options.device, options.time_limit, options.rng_seed)
    print(f"a conformance run: {rate:.0f} in a second, all included")
    for which, limit in limits.items():
        print(f"that is {rate / limit:.0%} of {which}")


def drawn(models: int, rng_seed: int) -> list[PosedModel]:
    coverage = Coverage(chosen_cells(), ())
    source = UniformDrawing(coverage, np.random.default_rng(rng_seed))
    found: list[PosedModel] = []
    while len(found) < models:
        drafts = source.ask(min(ROUND_MODELS, models - len(found)))
        source.tell(drafts, [DraftOutcome((True,) * len(one.nodes), whole=True) for one in drafts])
        found += [posed(draft, {}).whole for draft in drafts]
    return found


def allowed_rates(device: str, models: list[PosedModel]) -> dict[str, float]:
    """Return how many models the device runs in a second: of all, and of those that answer."""
    profile = find_profile(device, granted(trust=True))
    with ExitStack() as stack:
        arm = open_conformance(profile, stack, lambda: False).arms[0]
        arm.run(models[:1])  # which starts what loads models
        begin = time.monotonic()
        answers = arm.run(models)
        every = len(models) / (time.monotonic() - begin)
        answered = [one for one, it in zip(models, answers, strict=True) if it.failure is None]
        begin = time.monotonic()
        arm.run(answered)
        return {
            "all models": every,
            "models that answer": len(answered) / (time.monotonic() - begin),
        }


def rate_of_a_run(device: str, time_limit: str, rng_seed: int) -> float:
    with tempfile.TemporaryDirectory(prefix="edgeflare-speed-") as name:
        out = Path(name) / "run"
        command = [sys.executable, "-m", "edgeflare", "conform", "--device", device, "--quiet"]
        command += ["--trust", "--time-limit", time_limit, "--rng-seed", str(rng_seed)]
        done = subprocess.run([*command, "--out", str(out)], check=False, capture_output=True)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)} ended in {done.returncode}: {done.stderr.decode()}")
        document = json.loads((out / "conform.json").read_bytes())
    return float(document["models"] / document["seconds"])


if __name__ == "__main__":
    main()
