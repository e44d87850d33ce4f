"""Where device and twin part: the same file, run by other kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from edgeflare.diagnose.layer_figures import LayerDifference, LayerFigures, layer_of
from edgeflare.diagnose.prefix_search import find_onset
from edgeflare.diagnose.probed_arm import ObservedTensors, OpenProbe, ProbedArm, State
from edgeflare.diagnose.tensor_difference import Difference, difference
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import Part, extract, isolate, reason_not_cuttable
from edgeflare.models.model_probe import ProbeFailed, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph, GraphOp

_MOST_ISLAND_RUNS = 3
"""Device runs that tell what each operator adds. A small model takes one; one whose tensors fill
many messages is looked at around the onset alone."""

Method = Literal["capture", "exposure", "prefix", "none"]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class KernelOnset:
    """Where device and twin part on one input.

    Attributes:
        method: how it was found: all tensors captured, all tensors made outputs, beginnings of the
            network bisected, or not at all.
        onset: where the two part; None where they do not, or it could not be found.
        first: whether no earlier layer differs; else the onset is one of perhaps several.
        most: the layer that adds most by itself; None where that is not known, or none adds.
        layers: in execution order, those that were seen.
        perturbation: how far looking moved the output of an arm; None where it did not.
        device_runs: device queries spent.
        note: what could not be done, as a sentence without its full stop; else empty.

    """

    method: Method
    onset: LayerFigures | None = None
    first: bool = False
    most: LayerFigures | None = None
    layers: tuple[LayerDifference, ...] = ()
    perturbation: Difference | None = None
    device_runs: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "method": self.method,
            "onset": None if self.onset is None else self.onset.to_json(),
            "first": self.first,
            "most": None if self.most is None else self.most.to_json(),
            "perturbation": None if self.perturbation is None else self.perturbation.to_json(),
            "device_runs": self.device_runs,
            "note": self.note,
            "layers": [layer.to_json() for layer in self.layers],
        }


class KernelLocalizer:
    """Finds where device and twin part; what it opens serves all inputs, until it is closed.

    Args:
        graph: of the compressed model.
        content: its file.
        device: opens models on the device.
        twin: opens models on the host, with the twin's kernels.
        payload_limit: the most bytes that one input to the device may have.

    """

    def __init__(
        self, graph: Graph, content: bytes, device: OpenProbe, twin: OpenProbe, payload_limit: int
    ) -> None:
        self._graph = graph
        self._limit = payload_limit
        self._parts: dict[tuple[int, ...], Part] = {}
        self._device = ProbedArm(graph, content, device)
        self._twin = ProbedArm(graph, content, twin)
        # The two sides work at the same time; most of it is waiting for worker processes.
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="edgeflare-side")

    def close(self) -> None:
        """Close all that was opened."""
        self._pool.shutdown()
        self._device.close()
        self._twin.close()

    def find(
        self, encoded: Values, most_runs: int = MOST_DEVICE_QUERIES
    ) -> tuple[KernelOnset, State]:
        """Find where device and twin part on an input.

        Args:
            encoded: (1, *input shape without its batch dimension), as the model takes it.
            most_runs: device queries that may be spent. Where they end, what was not seen by then
                is left out.

        Returns:
            Where they part, and what was seen of the twin.

        Raises:
            InfrastructureError: the device is lost.

        """
        if why := reason_not_cuttable(self._graph):
            return KernelOnset("none", note=f"the model's layers cannot be seen: {why}"), {}
        before = self._device.runs
        self._device.allow(most_runs)
        twin = ObservedTensors(None, {})
        try:
            inputs = [encoded]
            device_outputs, twin_outputs = self._both(lambda side: side.outputs(inputs))
            device, twin = self._both(
                lambda side: side.see(
                    inputs, device_outputs if side is self._device else twin_outputs
                )
            )
            found = self._compared(device, twin, device_outputs, twin_outputs)
        except (ProbeFailed, UserError) as failed:
            found = KernelOnset("none", note=f"the layers cannot be seen: {failed}")
        return replace(found, device_runs=self._device.runs - before), twin.state

    def _compared(
        self,
        device: ObservedTensors,
        twin: ObservedTensors,
        device_outputs: State,
        twin_outputs: State,
    ) -> KernelOnset:
        perturbation = device.perturbation or twin.perturbation
        if device.way and twin.way:
            found = self._from_sight(device, twin)
        elif self._parted(twin_outputs, device_outputs):
            found = self._from_prefixes(twin)
        else:
            found = KernelOnset(
                "prefix",
                note="device and twin put out the same, and what is before it cannot be seen",
            )
        return replace(found, perturbation=perturbation)

    # With everything in sight.

    def _from_sight(self, device: ObservedTensors, twin: ObservedTensors) -> KernelOnset:
        totals = {
            one.index: self._behind(one, twin.state, device.state)
            for one in self._graph.layers
            if all(tensor in twin.state and tensor in device.state for tensor in one.outputs)
        }
        onset = next((index for index in totals if totals[index].parted), None)
        unseen = [one.index for one in self._graph.layers if one.index not in totals]
        owns = self._owns(twin.state, onset)
        ways = (device.way, twin.way)
        return KernelOnset(
            "capture" if ways == ("capture", "capture") else "exposure",
            self._layer(onset),
            onset is not None and not any(index < onset for index in unseen),
            self._layer(_most(owns)),
            self._layers(totals, owns),
            note=f"{len(unseen)} layers could not be seen" if unseen else "",
        )

    # With the ends of beginnings in sight.

    def _from_prefixes(self, twin: ObservedTensors) -> KernelOnset:
        layers = self._graph.layers
        seen: dict[int, tuple[State, State]] = {}

        def parted(position: int) -> bool:
            part = extract(self._graph, 0, layers[position].index)
            seen[position] = self._ends(part, twin)
            return self._parted(*seen[position])

        position = find_onset(len(layers), parted)
        totals = {
            layers[at].index: max(
                (difference(self._graph.tensors[t], ours[t], theirs[t]) for t in theirs),
                key=lambda one: (one.parted, one.max_real),
            )
            for at, (ours, theirs) in seen.items()
        }
        onset, first = layers[position].index, position == 0
        if earlier := self._borne_out(position, twin, seen.get(position)):
            totals |= earlier
            onset = next(index for index in sorted(earlier) if earlier[index].parted)
            first = True
        owns = self._owns(twin.state, onset) if twin.way else {}
        return KernelOnset(
            "prefix",
            self._layer(onset),
            first,
            self._layer(_most(owns)),
            self._layers(totals, owns),
        )

    def _borne_out(
        self, position: int, twin: ObservedTensors, known: tuple[State, State] | None
    ) -> dict[int, Difference] | None:
        """Return what parts behind each layer up to an onset, or None where that cannot be seen.

        The beginning of the network is run once more, with all that its operators put out for its
        outputs. This is believed if it ends as the beginning that hid them did, and if the arms
        part in it.
        """
        layers = self._graph.layers[: position + 1]
        everything = [tensor for one in layers for tensor in one.outputs]
        try:
            part = extract(self._graph, 0, layers[-1].index, expose=everything)
            ends = self._ends(part, twin)
        except (ProbeFailed, ProbeRefused):
            return None
        if known is not None and any(
            before[tensor].tobytes() != now[tensor].tobytes()
            for before, now in zip(known, ends, strict=True)
            for tensor in before
        ):
            return None
        totals = {one.index: self._behind(one, *ends) for one in layers}
        return totals if any(one.parted for one in totals.values()) else None

    def _ends(self, part: Part, twin: ObservedTensors) -> tuple[State, State]:
        """Return what a beginning of the network puts out, on the twin and on the device."""
        if twin.way and all(tensor in twin.state for tensor in part.outputs):
            theirs = self._device.run_part(part, twin.state, keep=False)
            return {tensor: twin.state[tensor] for tensor in part.outputs}, theirs
        theirs, ours = self._both(lambda side: side.run_part(part, twin.state, keep=False))
        return ours, theirs

    # What each operator adds by itself.

    def _owns(self, twin: State, onset: int | None) -> dict[int, Difference]:
        """Return how far the two sides' operators part when given the twin's inputs."""
        owns: dict[int, Difference] = {}
        for group in self._groups(twin, onset):
            try:
                theirs, ours = self._islands(group, twin)
            except (ProbeFailed, ProbeRefused):
                continue
            for index in group:
                owns[index] = self._behind(self._graph.operators[index], ours, theirs)
        return owns

    def _islands(self, group: tuple[int, ...], twin: State) -> tuple[State, State]:
        if group not in self._parts:
            self._parts[group] = isolate(self._graph, group)
        part = self._parts[group]
        return self._both(lambda side: side.run_part(part, twin, keep=True))

    def _groups(self, twin: State, onset: int | None) -> Iterator[tuple[int, ...]]:
        """Yield operators that together fit one message, those around the onset first."""
        groups: list[list[int]] = [[]]
        room = self._limit
        for one in self._graph.layers:
            fed = self._graph.fed(one)
            size = sum(self._graph.tensors[tensor].nbytes for tensor in fed)
            if size > self._limit or not fed or any(tensor not in twin for tensor in fed):
                continue
            if size > room:
                groups.append([])
                room = self._limit
            groups[-1].append(one.index)
            room -= size
        groups = [group for group in groups if group]
        if onset is not None:
            groups.sort(key=lambda group: min(abs(index - onset) for index in group))
        yield from map(tuple, groups[:_MOST_ISLAND_RUNS])

    def _both(self, work: Callable[[ProbedArm], Result]) -> tuple[Result, Result]:
        """Do the same on the device and the twin, at the same time."""
        device, twin = (self._pool.submit(work, side) for side in (self._device, self._twin))
        # Both, before an error of one of them leaves the other one running.
        device.exception(), twin.exception()
        return device.result(), twin.result()

    def _behind(self, one: GraphOp, ours: State, theirs: State) -> Difference:
        """Return the difference of what an operator puts out."""
        differences = [
            difference(self._graph.tensors[tensor], ours[tensor], theirs[tensor])
            for tensor in one.outputs
        ]
        return max(differences, key=lambda found: (found.parted, found.max_real))

    def _parted(self, ours: State, theirs: State) -> bool:
        return any(
            difference(self._graph.tensors[tensor], ours[tensor], theirs[tensor]).parted
            for tensor in theirs
        )

    def _layer(self, index: int | None) -> LayerFigures | None:
        return None if index is None else layer_of(self._graph, self._graph.operators[index])

    def _layers(
        self, totals: Mapping[int, Difference], owns: Mapping[int, Difference]
    ) -> tuple[LayerDifference, ...]:
        return tuple(
            LayerDifference(layer_of(self._graph, one), totals.get(one.index), owns.get(one.index))
            for one in self._graph.layers
            if one.index in totals or one.index in owns
        )


def _most(owns: Mapping[int, Difference]) -> int | None:
    """Return the operator that adds most, relative to what it puts out; the first among equals."""
    adding = {index: own for index, own in owns.items() if own.parted}
    return min(adding, key=lambda index: (adding[index].snr_db, index), default=None)
