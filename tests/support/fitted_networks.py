"""Networks to fit: real files, the images that they are fitted with, and others to judge by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare_protos.kernel_sets import Kernels
from networks import pair_of
from tampering import COMPRESSED, EXAMPLE, ORIGINAL, InterpreterProbe

Net = Literal["example", "mobilenet", "resnet"]
NETS: tuple[Net, ...] = ("example", "mobilenet", "resnet")

FITTED_WITH = 80
JUDGED_BY = 120


@dataclass(frozen=True, eq=False)
class JudgedNetwork:
    """A network to fit, and images halfway between two that it is not fitted with.

    Those are less decided than the images of a data set.
    """

    network: QuantizedNetwork
    rows: NDArray[np.int8]
    original_rows: NDArray[np.float32]

    def deviating(self, content: bytes, kernels: Kernels = "xnnpack") -> int:
        """Of how many images a file's label is not the original's, or tied."""
        wanted = outputs(self.network.original, self.original_rows).argmax(axis=1)
        made = outputs(content, self.rows, kernels)
        best = np.sort(made, axis=1)
        return int(((made.argmax(axis=1) != wanted) | (best[:, -1] == best[:, -2])).sum())

    def error(self, content: bytes, kernels: Kernels = "xnnpack") -> float:
        """Root of the mean squared error of a file's probabilities."""
        wanted = outputs(self.network.original, self.original_rows)
        made = (outputs(content, self.rows, kernels).astype(np.float64) + 128) / 256
        return float(np.sqrt(((made - wanted) ** 2).mean()))


def judged(net: Net) -> JudgedNetwork:
    """A network whose probabilities come in int8 with the scale 1/256."""
    if net == "example":
        original, compressed = ORIGINAL.read_bytes(), COMPRESSED.read_bytes()
    else:
        original, compressed = pair_of(net)
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images = arrays["images"][: FITTED_WITH + JUDGED_BY]
    fitted, others = images[:FITTED_WITH], images[FITTED_WITH:].astype(np.uint16)
    between = ((others + np.roll(others, 1, axis=0)) // 2).astype(np.uint8)
    network = QuantizedNetwork(compressed, original, _raw(fitted), _real(fitted))
    return JudgedNetwork(network, _raw(between), _real(between))


def untold(_done: int, _of: int) -> None:
    """Progress that nobody follows."""


def require_progress(told: list[tuple[int, int]]) -> None:
    """Progress begins at nothing, never falls, and ends with all of one total."""
    (total,) = {of for _, of in told}
    dones = [done for done, _ in told]
    assert dones == sorted(set(dones))
    assert (dones[0], dones[-1]) == (0, total)


def _raw(images: NDArray[np.uint8]) -> NDArray[np.int8]:
    return (images.astype(np.int16) - 128).astype(np.int8)


def _real(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.asarray(images.astype(np.float32) / np.float32(255))


def outputs(content: bytes, rows: NDArray[Any], kernels: Kernels = "xnnpack") -> NDArray[Any]:
    """What a model puts out on rows, (n, classes)."""
    return _outputs(content, rows.tobytes(), rows.dtype.name, rows.shape, kernels)


@cache
def _outputs(
    content: bytes, rows: bytes, dtype: str, shape: tuple[int, ...], kernels: Kernels
) -> NDArray[Any]:
    probe = InterpreterProbe(content, kernels)
    given = np.frombuffer(rows, dtype).reshape(shape)
    return np.concatenate([np.array(probe.run([row[None]])[0]) for row in given])


def structure(content: bytes) -> object:
    """What fitting leaves alone: operators, their options, and tensors but for quantization."""
    graph = Graph(content)
    return (
        graph.operators,
        [repr(graph.options(one.index)) for one in graph.operators],
        [(one.name, one.shape, one.dtype, len(one.scales), one.axis) for one in graph.tensors],
    )
