"""Planting a fault, searching for it with `edgeflare`, and having one of its findings explained."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import fault_injection
import runtime_fault_injection
from edgeflare.models.pair import load_pair
from fault_catalogue import OTHER_RUNTIME, Fault
from faulty_agent import DOUBLE, faulty_agent
from forked_commands import forked_edgeflare

OLD_BOARD = Path(__file__).resolve().parents[2] / ".venv-old-board" / "bin" / "python"
"""The Python of the environment with tflite-runtime 2.14; it may be absent."""

_SECONDS = 400

_SEEDS = 24
"""Searched for a fault, unless the caller asks for fewer."""


@dataclass
class Judged:
    """What was said of a fault.

    Attributes:
        fault: which.
        verdict: on one of its findings; "nothing found" where the search found none.
        which: what the verdict names besides.
        operator: the layer that is named, for a fault in the file that where twin and original
            part, else that where device and twin do.
        first: whether it is called the first.
        most: of a fault in the device, the layer that differs most in isolation.
        why: the evidence that decided.
        device_queries: those that the explanation says it took.
        asked: those that a faulty device counted meanwhile; None of other devices.
        seconds: of the search and the explanation.
        errors: what went wrong.

    """

    fault: Fault
    verdict: str = "nothing found"
    which: str | None = None
    operator: int | None = None
    first: bool = False
    most: int | None = None
    why: str = ""
    device_queries: int = 0
    asked: int | None = None
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def right_verdict(self) -> bool:
        """Whether the verdict is the right one, and names what it has to."""
        named = self.fault.which is None or self.which == self.fault.which
        return self.verdict == self.fault.verdict and named

    @property
    def right_layer(self) -> bool:
        """Whether the layer is the one that the fault sits in."""
        return self.operator == self.fault.operator

    @property
    def among_layers(self) -> bool:
        """Whether the fault's layer is one of the two that are said: the onset, or the largest.

        Kernels of another runtime may differ by a step from the first layer on.
        """
        return self.fault.operator in (self.operator, self.most)


def judge(fault: Fault, seeds: int = _SEEDS) -> Judged:
    """Plant a fault, search so many seeds, and return what is said of it."""
    began = time.monotonic()
    judged = Judged(fault)
    with tempfile.TemporaryDirectory(prefix="edgeflare-planted-") as name:
        folder = Path(name)
        pair = folder / "pair"
        shutil.copytree(fault.pair, pair)
        if fault.where == "file":
            load_pair(pair).compressed.write_bytes(fault.broken_file())
        with _device(fault, folder) as device:
            try:
                _explain(judged, folder, device, seeds)
            except (subprocess.SubprocessError, OSError) as error:
                judged.errors.append(f"{error} {getattr(error, 'stderr', '')}")
    judged.seconds = time.monotonic() - began
    return judged


@dataclass(frozen=True)
class Healthy:
    """A compressed model in which quantization did what quantization does.

    Attributes:
        pair: folder of the pair whose original it was made from.
        name: who made it, or how.
        content: the `.tflite` file.

    """

    pair: Path
    name: str
    content: bytes


@dataclass(frozen=True)
class JudgedHealthy:
    """What was said of the findings of a healthy file.

    Attributes:
        file: which.
        findings: that were explained, of those that compression caused.
        named: how many of them a layer was blamed for, as faulty or as coarse.
        listed: how many of them had a layer that is beyond what quantization explains.
        unseen: how many of them the layers of which were not seen.

    """

    file: Healthy
    findings: int
    named: int
    listed: int
    unseen: int

    @property
    def right(self) -> bool:
        """Whether there are findings, and all are due to no single layer."""
        return self.findings > 0 and not (self.named or self.listed or self.unseen)


def judge_healthy(file: Healthy, seeds: int = _SEEDS) -> JudgedHealthy:
    """Search so many seeds for a healthy file, and return what is said of all findings."""
    with tempfile.TemporaryDirectory(prefix="edgeflare-healthy-") as name:
        folder = Path(name)
        pair = folder / "pair"
        shutil.copytree(file.pair, pair, ignore=shutil.ignore_patterns("variants"))
        compressed = load_pair(pair).compressed
        compressed.chmod(0o644)
        compressed.write_bytes(file.content)
        _search(folder, "emulated-xnnpack", "any", seeds)
        _edgeflare(folder, "explain", "run")
        explained = folder / "run" / "explain.json"
        findings = json.loads(explained.read_bytes())["findings"] if explained.exists() else {}
    losses = [
        one["twin_and_original"]
        for one in findings.values()
        if one["verdict"]["name"] == "compression"
    ]
    return JudgedHealthy(
        file,
        len(losses),
        sum(loss["most"] is not None or bool(loss["coarse"]) for loss in losses),
        sum(loss["first"] is not None for loss in losses),
        sum(not loss["layers"] for loss in losses),
    )


@contextmanager
def _device(fault: Fault, folder: Path) -> Iterator[str]:
    """Start an agent with the fault, and yield the profile's name."""
    profiles = folder / "device_profiles"
    profiles.mkdir()
    if fault.where == "file":
        yield "emulated-xnnpack"
        return
    if fault.planted.fault == OTHER_RUNTIME:
        text = f'transport = "emulated"\npython = "{OLD_BOARD}"\n'
        (profiles / f"{DOUBLE}.toml").write_text(text)
        yield DOUBLE
        return
    (folder / "spec.json").write_text(json.dumps(asdict(fault.planted)))
    plants = runtime_fault_injection if fault.settings else fault_injection
    launcher = [sys.executable, str(plants.__file__), f"{folder}/spec.json"]
    settings = fault.settings or f"threads = {fault.planted.threads}"
    with faulty_agent(folder, launcher, settings) as device:
        yield device


def _explain(judged: Judged, folder: Path, device: str, seeds: int) -> None:
    fault, run = judged.fault, folder / "run"
    _search(folder, device, "any" if fault.where == "file" else "kernel", seeds)
    document = json.loads((run / "run.json").read_bytes())
    found = [*document["deviating_seeds"], *document["findings"], *document["flaky"]]
    if not found:
        return
    # Where all three labels differ, compression has a share in it besides.
    strongest = max(found, key=lambda one: (one["cause"] != "mixed", one["strength"] or 0.0))
    before = _asked(folder)
    _edgeflare(folder, "explain", str(run), str(strongest["seed_id"]), "--device", device)
    judged.asked = None if before is None else (_asked(folder) or 0) - before
    explained = json.loads((run / "explain.json").read_bytes())
    entry = explained["findings"][str(strongest["seed_id"])]
    verdict = entry["verdict"]
    judged.verdict, judged.which, judged.why = verdict["name"], verdict["which"], verdict["why"]
    judged.device_queries = entry["device_queries"]
    onset = entry["device_and_twin"]["onset"]
    if fault.where == "file":
        onset = entry["twin_and_original"]["most"]
    judged.operator = None if onset is None else onset["operator_index"]
    judged.first = entry["device_and_twin"]["first"]
    most = entry["device_and_twin"]["most"]
    judged.most = None if most is None else most["operator_index"]


def _search(folder: Path, device: str, find: str, seeds: int) -> None:
    _edgeflare(
        folder,
        *("search", "pair", "--device", device, "--find", find, "--first", str(seeds)),
        # The host's other kernels know nothing of a fault in the device.
        *("--ensemble", "xnnpack", "--max-queries", "1000", "--shrink", "0"),
        *("--fail-on", "none", "--out", "run"),
    )


def _asked(folder: Path) -> int | None:
    """Return how many inputs a faulty device has been asked; None where no such device is."""
    counted = folder / "spec.json.asked"
    return counted.stat().st_size if counted.exists() else None


def _edgeflare(folder: Path, *arguments: str) -> None:
    subprocess.run(
        [forked_edgeflare(), *arguments, "--trust"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
