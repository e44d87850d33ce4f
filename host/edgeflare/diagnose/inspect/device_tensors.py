"""The tensors of the compressed model as a device computes them, captured there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from edgeflare.devices.device import Device
from edgeflare.diagnose.inspect.unit_behaviours import Row
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import ProbeFailed
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_graph import Graph


@contextmanager
def device_tensors(device: Device, pair: Pair) -> Iterator[Callable[[Row], Mapping[int, Row]]]:
    """Open the compressed model on a device, and yield what captures its tensors for a row.

    Raises:
        UserError: the device cannot capture tensors, or the model gives no answer on an input.
        InfrastructureError: the device is lost.

    """
    content = read_model_file(pair.executed)
    graph = Graph(content, str(pair.compressed))
    shape = graph.tensors[graph.inputs[0]].shape
    name = device.profile.name
    with closing(device.probe(content, capture=True)) as probe:
        if not probe.captures:
            raise UserError(
                f"{name} cannot capture the tensors inside of a model: leave out --device, or"
                " install this version of edgeflare there"
            )

        def tensors_of(row: Row) -> Mapping[int, Row]:
            try:
                return dict(zip(probe.made, probe.run([row.reshape(shape)]), strict=True))
            except ProbeFailed as failed:
                raise UserError(f"{name}: no answer on an input: {failed}") from failed

        yield tensors_of
