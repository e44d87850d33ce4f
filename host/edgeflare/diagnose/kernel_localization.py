"""Find the layer where device and twin begin to differ: the same file, run by other kernels.

For delegates whose intermediate tensors cannot be observed it is found by bisection over prefixes
of the network: its parts from the input to some layer. Rounding can make values equal again, so a
bisection finds *an* onset, a layer before which the two arms are equal and behind which they are
not; it cannot say whether they also differed earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from edgeflare.core.query import Arm
from edgeflare.diagnose.arm_probe import ObservedTensors, OpenProbe, ProbedArm, State
from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from edgeflare.diagnose.hidden_layers import follows_from, hidden_layers, where_hidden, where_unseen
from edgeflare.diagnose.layer_difference import (
    Difference,
    KernelOnset,
    LayerDifference,
    LayerName,
    any_parted,
    difference,
    layer_difference,
    layer_name,
)
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import Part, extract, is_readable, isolate, readable_outputs
from edgeflare.models.model_probe import ProbeFailed, ProbeRefused, Values
from edgeflare.models.non_finite_values import NonFiniteOnset, non_finite_onset
from edgeflare.models.tflite_graph import Graph, GraphOp

_MOST_ISLAND_RUNS = 3
"""Device runs in which operators are run in isolation. A small model takes one; of a model whose
tensors fill many messages, only the operators around the onset are run."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ObservedKernels:
    """What was seen of device and twin on one input.

    Attributes:
        onset: where they begin to differ.
        twin: observed values of the twin, by tensor.
        non_finite: where values that are not finite begin, by arm; None where all are finite. Arms
            that were not seen are absent.

    """

    onset: KernelOnset
    twin: State
    non_finite: Mapping[Arm, NonFiniteOnset | None]


class KernelLocalizer:
    """Finds where device and twin begin to differ. Models that it opens stay open for more inputs.

    Args:
        graph: graph of the compressed model.
        content: content of the model's file.
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
        # The two arms work at the same time; most of it is waiting for worker processes.
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="edgeflare-side")

    def close(self) -> None:
        """Close all that was opened."""
        self._pool.shutdown()
        self._device.close()
        self._twin.close()

    def find(self, encoded: Values, most_runs: int = MOST_DEVICE_QUERIES) -> ObservedKernels:
        """Find where device and twin begin to differ on an input.

        Args:
            encoded: (1, *input shape without its batch dimension), as the model takes it.
            most_runs: device queries that may be spent. What is not observed by then is left out.

        """
        before = self._device.runs
        self._device.allow(most_runs)
        twin = ObservedTensors(None, {})
        non_finite: Mapping[Arm, NonFiniteOnset | None] = {}
        try:
            inputs = [encoded]
            device_outputs, twin_outputs = self._both(lambda arm: arm.outputs(inputs))
            device, twin = self._both(
                lambda arm: arm.observe(
                    inputs, device_outputs if arm is self._device else twin_outputs
                )
            )
            found = self._compared(device, twin, device_outputs, twin_outputs)
            non_finite = self._non_finite(device, twin, device_outputs, twin_outputs, found)
        except (ProbeFailed, UserError) as failed:
            found = KernelOnset("none", note=f"the layers cannot be seen: {failed}")
        found = replace(found, device_runs=self._device.runs - before)
        return ObservedKernels(found, twin.state, non_finite)

    def observe_twin(self, encoded: Values) -> State:
        """Return the values of the twin's tensors on an input, by tensor; none if not seen.

        Args:
            encoded: as for `find`.

        """
        try:
            return self._twin.observe([encoded], self._twin.outputs([encoded])).state
        except (ProbeFailed, UserError):
            return {}

    def _compared(
        self,
        device: ObservedTensors,
        twin: ObservedTensors,
        device_outputs: State,
        twin_outputs: State,
    ) -> KernelOnset:
        perturbation = device.perturbation or twin.perturbation
        if device.method and twin.method:
            found = self._from_observed_tensors(device, twin)
        elif any_parted(self._graph, twin_outputs, device_outputs):
            found = self._from_prefixes(twin)
        else:
            found = KernelOnset(
                "prefix",
                note="device and twin put out the same, and what is before it cannot be seen",
            )
        return replace(found, perturbation=perturbation)

    def _non_finite(
        self,
        device: ObservedTensors,
        twin: ObservedTensors,
        device_outputs: State,
        twin_outputs: State,
        found: KernelOnset,
    ) -> dict[Arm, NonFiniteOnset | None]:
        """Return where values that are not finite begin; what the device hides does not count."""
        hidden = {layer.operator_index for layer in found.layers if layer.hidden}
        shown = {
            tensor: values
            for tensor, values in device.state.items()
            if self._graph.made_by.get(tensor) not in hidden
        }
        return {
            arm: non_finite_onset(self._graph, state if method else outputs)
            for arm, method, state, outputs in (
                (Arm.TWIN, twin.method, twin.state, twin_outputs),
                (Arm.DEVICE, device.method, shown, device_outputs),
            )
        }

    # Where all intermediate tensors can be observed.

    def _from_observed_tensors(self, device: ObservedTensors, twin: ObservedTensors) -> KernelOnset:
        totals = self._totals(twin.state, device.state)
        own_differences = self._own_differences(twin.state, _first_parted(totals))
        hidden = hidden_layers(
            self._graph, totals, own_differences, lambda: self._following(totals, device.state)
        )
        onset = _first_parted(totals, hidden)
        unseen = [layer for layer in self._graph.layers if layer.index not in totals]
        earlier = [*(operator.index for operator in unseen), *hidden]
        notes = where_unseen(self._graph, unseen), where_hidden(self._graph, hidden, onset)
        methods = (device.method, twin.method)
        return KernelOnset(
            "capture" if methods == ("capture", "capture") else "exposure",
            self._layer(onset),
            onset is not None and not any(index < onset for index in earlier),
            self._layer(_most(own_differences)),
            self._layers(totals, own_differences, hidden),
            note="; ".join(filter(None, notes)),
        )

    def _totals(self, twin: State, device: State) -> dict[int, Difference]:
        """Return the difference behind each layer that both arms show."""
        return {
            layer.index: self._behind(layer, twin, device)
            for layer in self._graph.layers
            if layer.outputs
            and all(tensor in twin and tensor in device for tensor in layer.outputs)
        }

    def _following(self, totals: Mapping[int, Difference], device: State) -> set[int]:
        """Return the layers whose outputs on the device follow from the inputs that it shows."""
        layers = [
            layer
            for layer in self._graph.layers
            if layer.index in totals and not self._graph.unreadable(layer)
            if all(tensor in device for tensor in self._graph.fed(layer))
        ]
        try:
            part = isolate(self._graph, [layer.index for layer in layers])
            made = self._twin.run_part(part, device, keep=True)
        except (ProbeFailed, ProbeRefused):
            return set()
        return {
            layer.index
            for layer in layers
            if follows_from(totals[layer.index], self._behind(layer, made, device))
        }

    # Where only the outputs of prefixes can be observed.

    def _from_prefixes(self, twin: ObservedTensors) -> KernelOnset:
        layers = [layer for layer in self._graph.layers if is_readable(self._graph, 0, layer.index)]
        seen: dict[int, tuple[State, State]] = {}

        def parted(position: int) -> bool:
            part = extract(self._graph, 0, layers[position].index)
            seen[position] = self._ends(part, twin)
            return any_parted(self._graph, *seen[position])

        position = find_onset(len(layers), parted)
        totals = {
            layers[at].index: max(
                (
                    difference(self._graph.tensors[t], twin_state[t], device_state[t])
                    for t in device_state
                ),
                key=lambda layer: (layer.parted, layer.max_error),
            )
            for at, (twin_state, device_state) in seen.items()
        }
        onset, first = layers[position].index, position == 0
        own_differences = self._own_differences(twin.state, onset) if twin.method else {}
        if exposed := self._exposed_prefix(onset, twin, seen.get(position)):
            earlier, device = exposed
            hidden = hidden_layers(
                self._graph, earlier, own_differences, lambda: self._following(earlier, device)
            )
            shown = _first_parted(earlier, hidden)
            first = shown is not None and not any(index < shown for index in hidden)
            onset = onset if shown is None else shown
            totals |= {index: layer for index, layer in earlier.items() if index not in hidden}
        return KernelOnset(
            "prefix",
            self._layer(onset),
            first,
            self._layer(_most(own_differences)),
            self._layers(totals, own_differences),
            note=where_unseen(self._graph, filter(self._graph.unreadable, self._graph.layers)),
        )

    def _exposed_prefix(
        self, last: int, twin: ObservedTensors, known: tuple[State, State] | None
    ) -> tuple[dict[int, Difference], State] | None:
        """Return the difference behind each layer up to an onset, and the device's tensors.

        None where they are not observable.

        The prefix of the network is run once more with all its tensors as outputs. The result
        counts if its last outputs are those of the prefix without the further outputs, and if the
        arms differ in it.
        """
        layers = [layer for layer in self._graph.layers if layer.index <= last]
        try:
            part = extract(self._graph, 0, last, expose=readable_outputs(self._graph, layers))
            ends = self._ends(part, twin)
        except (ProbeFailed, ProbeRefused):
            return None
        if known is not None and any(
            before[tensor].tobytes() != now[tensor].tobytes()
            for before, now in zip(known, ends, strict=True)
            for tensor in before
        ):
            return None
        totals = self._totals(*ends)
        return (totals, ends[1]) if _first_parted(totals) is not None else None

    def _ends(self, part: Part, twin: ObservedTensors) -> tuple[State, State]:
        """Return the outputs of a prefix of the network, on the twin and on the device."""
        if twin.method and all(tensor in twin.state for tensor in part.outputs):
            device_state = self._device.run_part(part, twin.state, keep=False)
            return {tensor: twin.state[tensor] for tensor in part.outputs}, device_state
        device_state, twin_state = self._both(
            lambda arm: arm.run_part(part, twin.state, keep=False)
        )
        return twin_state, device_state

    # The difference that each operator causes in isolation.

    def _own_differences(self, twin: State, onset: int | None) -> dict[int, Difference]:
        """Return the difference that each operator causes when given the twin's inputs."""
        own_differences: dict[int, Difference] = {}
        for group in self._groups(twin, onset):
            try:
                device_state, twin_state = self._islands(group, twin)
            except (ProbeFailed, ProbeRefused):
                continue
            for index in group:
                own_differences[index] = self._behind(
                    self._graph.operators[index], twin_state, device_state
                )
        return own_differences

    def _islands(self, group: tuple[int, ...], twin: State) -> tuple[State, State]:
        if group not in self._parts:
            self._parts[group] = isolate(self._graph, group)
        part = self._parts[group]
        return self._both(lambda arm: arm.run_part(part, twin, keep=True))

    def _groups(self, twin: State, onset: int | None) -> Iterator[tuple[int, ...]]:
        """Yield groups of operators whose inputs fit one message, those around the onset first."""
        groups: list[list[int]] = [[]]
        room = self._limit
        for layer in self._graph.layers:
            fed = self._graph.fed(layer)
            if (
                self._graph.unreadable(layer)
                or not fed
                or any(tensor not in twin for tensor in fed)
            ):
                continue
            size = sum(self._graph.tensors[tensor].nbytes for tensor in fed)
            if size > self._limit:
                continue
            if size > room:
                groups.append([])
                room = self._limit
            groups[-1].append(layer.index)
            room -= size
        groups = [group for group in groups if group]
        if onset is not None:
            groups.sort(key=lambda group: min(abs(index - onset) for index in group))
        yield from map(tuple, groups[:_MOST_ISLAND_RUNS])

    def _both(self, work: Callable[[ProbedArm], Result]) -> tuple[Result, Result]:
        """Do the same on the device and the twin, at the same time."""
        device, twin = (self._pool.submit(work, arm) for arm in (self._device, self._twin))
        # Wait for both: an error of one must not leave the other one running.
        device.exception(), twin.exception()
        return device.result(), twin.result()

    def _behind(self, operator: GraphOp, twin_state: State, device_state: State) -> Difference:
        """Return the largest difference among the outputs of an operator."""
        differences = [
            difference(self._graph.tensors[tensor], twin_state[tensor], device_state[tensor])
            for tensor in operator.outputs
        ]
        return max(differences, key=lambda found: (found.parted, found.max_error))

    def _layer(self, index: int | None) -> LayerName | None:
        return None if index is None else layer_name(self._graph, self._graph.operators[index])

    def _layers(
        self,
        totals: Mapping[int, Difference],
        own_differences: Mapping[int, Difference],
        hidden: Collection[int] = (),
    ) -> tuple[LayerDifference, ...]:
        return tuple(
            layer_difference(
                layer_name(self._graph, layer),
                None if layer.index in hidden else totals.get(layer.index),
                own_differences.get(layer.index),
                hidden=layer.index in hidden,
            )
            for layer in self._graph.layers
            if layer.index in totals or layer.index in own_differences
        )


def _first_parted(totals: Mapping[int, Difference], hidden: Collection[int] = ()) -> int | None:
    return min(
        (at for at, total in totals.items() if total.parted and at not in hidden), default=None
    )


def _most(own_differences: Mapping[int, Difference]) -> int | None:
    """Return the operator with the largest difference relative to its output."""
    adding = {
        index: inf if own.snr_db is None else own.snr_db
        for index, own in own_differences.items()
        if own.parted
    }
    return min(adding, key=lambda index: (adding[index], index), default=None)


def find_onset(count: int, differ: Callable[[int], bool]) -> int:
    """Return a position behind which the arms differ and before which they do not.

    Asks at most ⌈log2 count⌉ times.

    Args:
        count: number of positions; behind the last one the arms are known to differ.
        differ: whether the arms differ behind a position, from 0 to count - 2.

    """
    equal, different = -1, count - 1
    while different - equal > 1:
        middle = (equal + different) // 2
        if differ(middle):
            different = middle
        else:
            equal = middle
    return different
