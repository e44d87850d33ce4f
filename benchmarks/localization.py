"""How long explaining a finding takes, step by step: seconds of each, and their medians.

    python benchmarks/localization.py RUN

RUN is the run directory of a search with findings, the models of which are where they were. For
each finding: the votes of host and device; where device and twin part, with every tensor in sight
("capture") and by beginnings of the network alone ("bisection", as where a delegate hides
everything); and where twin and original part. Each step opens what it needs anew, as it does for
a finding that is explained alone; of several, `edgeflare explain` opens it once, which is what the
column "open" leaves: where device and twin part when all is open already.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from edgeflare.core.query import Arm
from edgeflare.core.tensor import GivenRows
from edgeflare.devices.device import Device, connect
from edgeflare.diagnose.arm_probe import OpenProbe, State
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.execution_modes import ask_device, ask_host
from edgeflare.diagnose.kernel_localization import KernelLocalizer
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.models.evaluator import Signature
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.model_probe import HostProbe, Probe, ProbeRefused, Values
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare.replay.past_run import PastRun
from edgeflare.trust import KEPT_ONLY

STEPS = ("votes", "capture", "open", "bisection", "original")
Made = TypeVar("Made")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="a run directory with findings")
    parser.add_argument("--device", help="where to look (default: the first of the run's own)")
    options = parser.parse_args()
    past = PastRun.open(options.run)
    profile = past.profiles([options.device] if options.device else None, KEPT_ONLY)[0]
    begun = time.perf_counter()
    with connect(profile) as device:
        opening = time.perf_counter() - begun
        rows = {}
        with encoders(past.pair()) as (pair, encode, given):
            for entry in past.deviations:
                image = past.directory.load_input(entry.file)[np.newaxis]
                rows[entry.seed_id] = Watch(past, device, pair, encode, given).steps(image)
    show(profile.name, opening, rows)


Encode = Callable[[Arm, NDArray[np.uint8]], Values]


@contextmanager
def encoders(pair: Pair) -> Iterator[tuple[Pair, Encode, Signature | None]]:
    """Open the models long enough to know what they take, and what the original gives."""
    given = None
    with closing(open_tflite(pair.compressed)) as twin:
        tensors = {Arm.TWIN: twin.signature.input}
        inputs = {Arm.TWIN: ModelInputs(pair.interface, twin.signature.inputs, "the twin")}
        if pair.original is not None:
            with closing(open_original(pair, inputs[Arm.TWIN])) as original:
                given = original.signature
                tensors[Arm.ORIGINAL] = given.input
                inputs[Arm.ORIGINAL] = ModelInputs(
                    pair.interface, original.signature.inputs, pair.original, inputs[Arm.TWIN]
                )

    def encode(arm: Arm, image: NDArray[np.uint8]) -> Values:
        return inputs[arm].encoder().encode(image).reshape(tensors[arm].shape)

    yield pair, encode, given


@dataclass
class Watch:
    """The steps of one explanation, timed."""

    past: PastRun
    device: Device
    pair: Pair
    encode: Encode
    given: Signature | None

    def steps(self, image: NDArray[np.uint8]) -> dict[str, float]:
        """Return the seconds of each step."""
        content = self.pair.compressed.read_bytes()
        graph, encoded = Graph(content), self.encode(Arm.TWIN, image)
        taken = {"votes": timed(lambda: self._vote(encoded))[0]}
        with closing(self._finder(graph, content, self._on_device)) as finder:
            taken["capture"], seen = timed(lambda: finder.find(encoded))
            taken["open"], _ = timed(lambda: finder.find(encoded))
        with closing(self._finder(graph, content, self._hidden)) as finder:
            taken["bisection"], bisected = timed(lambda: finder.find(encoded))
            if bisected.onset.method != "prefix":
                del taken["bisection"]
        if self.pair.original is not None and self.pair.original.endswith(".tflite"):
            taken["original"], _ = timed(lambda: self._lose(graph, seen.twin, image))
        return taken

    def _vote(self, encoded: Values) -> None:
        stage = OutputStage(self.pair.interface, self.past.header.arms[Arm.TWIN])
        path = self.pair.compressed
        with ThreadPoolExecutor(1) as pool:
            given = GivenRows(encoded)
            asked = pool.submit(ask_device, self.device, path, stage, given)
            ask_host(path, stage, given)
            asked.result()

    def _lose(self, graph: Graph, state: State, image: NDArray[np.uint8]) -> None:
        content = Path(str(self.pair.original)).read_bytes()
        assert self.given is not None  # noqa: S101 - there is an original
        stage = OutputStage(self.pair.interface, self.past.header.arms[Arm.ORIGINAL])
        reader = ModelReader(stage, self.given)
        finder = CompressionLocalizer(graph, Graph(content), content, self._on_host, reader)
        with closing(finder):
            finder.find(state, self.encode(Arm.ORIGINAL, image))

    def _finder(self, graph: Graph, content: bytes, device: OpenProbe) -> KernelLocalizer:
        limit = self.device.payload_limit_bytes
        return KernelLocalizer(graph, content, device, self._on_host, limit)

    def _on_host(self, content: bytes, capture: bool) -> HostProbe:
        return HostProbe(content, self.past.header.plan.ensemble[0], capture=capture)

    def _on_device(self, content: bytes, capture: bool) -> Probe:
        return self.device.probe(content, capture=capture)

    def _hidden(self, content: bytes, capture: bool) -> Probe:
        """Open a model as a device does that shows nothing on the way."""
        if capture or len(Graph(content).outputs) > 2:
            raise ProbeRefused("nothing is shown")
        return self.device.probe(content)


def timed(work: Callable[[], Made]) -> tuple[float, Made]:
    """Return how long something took, and what it returned."""
    begun = time.perf_counter()
    made = work()
    return time.perf_counter() - begun, made


def show(device: str, opening: float, rows: dict[int, dict[str, float]]) -> None:
    table = Table("seed", *STEPS)
    for seed_id, taken in rows.items():
        table.add_row(
            str(seed_id), *(f"{taken[step]:.2f}" if step in taken else "–" for step in STEPS)
        )
    medians = {step: [taken[step] for taken in rows.values() if step in taken] for step in STEPS}
    table.add_section()
    table.add_row(
        "median", *(f"{median(known):.2f}" if known else "–" for known in medians.values())
    )
    console = Console()
    console.print(f"{device}: opened in {opening:.2f} s; seconds for each finding:")
    console.print(table)


if __name__ == "__main__":
    main()
