"""An arm of an opened pair whose neurons are seen while it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.campaign.pipeline import MOST_RECOVERIES
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.arm import Arm
from edgeflare.core.input import Input
from edgeflare.core.tensor_rows import unpack_rows
from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError
from edgeflare.models.invocation import ONCE
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import HostProbe, Probe, ProbeRefused
from edgeflare.models.tflite_graph import Graph
from edgeflare.run.device_assignment import device_of
from edgeflare.whitebox.captured_neurons import CapturedNeurons


class CapturedArm:
    """An arm that is asked about one input at a time. Its models are opened when they are needed.

    Attributes:
        runs: how often it answered.

    """

    def __init__(
        self,
        opened: OpenedPair,
        arm: Arm,
        thresholds: Sequence[float],
        recover: Callable[[int], None],
    ) -> None:
        """Take an arm.

        Args:
            opened: the pair.
            arm: one of its arms.
            thresholds: at which neurons count as covered.
            recover: brings a lost device back, by its place among the devices, or raises
                InfrastructureError.

        Raises:
            ProbeRefused: the arm's model is no `.tflite` file, or not called once for each input.
            UserError: the file cannot be read as one.

        """
        pair = opened.pair
        source = Path(str(pair.original if arm is Arm.ORIGINAL else pair.executed))
        if source.suffix.lower() != ".tflite":
            raise ProbeRefused("its layers are seen only if it is a .tflite file")
        if pair.interface.invocation != ONCE:
            raise ProbeRefused(
                "the layers of a model with a state, frames, shapes or a signature of its own are"
                " not seen"
            )
        self.runs = 0
        self._opened, self._arm, self._thresholds = opened, arm, thresholds
        self._recover = recover
        self._content = read_model_file(source)
        self._graph = Graph(self._content, source.name)
        self._model = opened.panel.host(Arm.TWIN if arm is Arm.DEVICE else arm)
        if arm is Arm.DEVICE and opened.stages is not None:
            self._model = opened.stages.on_device
        self._stack = ExitStack()
        self._places: dict[int, CapturedNeurons] = {}

    def covered(self, one: Input, seed_id: int) -> NDArray[np.bool_]:
        """Return which neurons an input covers: (thresholds, neurons).

        Args:
            one: the input, of the pair's domain.
            seed_id: the seed that it comes from, which decides the device.

        Raises:
            ProbeRefused: nothing can be captured here, or not the same on all devices.
            ProbeFailed: the model gives no answer.
            InfrastructureError: a device or a worker process is lost for good.

        """
        rows = self._model.rows(one[None], [seed_id])
        arrays = unpack_rows(self._model.evaluator.signature.inputs, rows)
        index = device_of(seed_id, len(self._opened.devices)) if self._arm is Arm.DEVICE else 0
        for _ in range(MOST_RECOVERIES):
            try:
                found = self._neurons(index).covered([array[0] for array in arrays])
            except DeviceLost:
                self._places.pop(index, None)
                self._recover(index)
            except InfrastructureError as refused:
                if self._arm is Arm.DEVICE:  # its agent is there, and captures no model so large
                    raise ProbeRefused(str(refused)) from refused
                raise
            else:
                self.runs += 1
                return found
        raise InfrastructureError(
            f"the same input lost the device {MOST_RECOVERIES} times in a row, while its tensors"
            " were captured"
        )

    def close(self) -> None:
        """Close the models that were opened."""
        self._stack.close()

    def _neurons(self, index: int) -> CapturedNeurons:
        if index not in self._places:
            probe = self._stack.enter_context(closing(self._probe(index)))
            neurons = CapturedNeurons(self._graph, probe, self._thresholds)
            if any(neurons.count != other.count for other in self._places.values()):
                raise ProbeRefused("the devices do not capture the same tensors")
            self._places[index] = neurons
        return self._places[index]

    def _probe(self, index: int) -> Probe:
        if self._arm is Arm.DEVICE:
            return self._opened.devices[index].probe(self._content, capture=True)
        kernels = TWIN_KERNELS if self._arm is Arm.ORIGINAL else self._opened.ensemble[0]
        return HostProbe(self._content, kernels, capture=True)
