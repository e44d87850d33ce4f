"""Small networks as phones run them, each as a float `.tflite` and as its int8 sister, made without
TensorFlow.

`mobilenet` has MobileNetV2's inverted residuals, `resnet` has residual blocks whose shortcut is a
convolution, and `normalized` has features of length 1 in its midst, which LiteRT's GPU accelerator
does not compute: it takes what comes before. `pointwise` has one convolution of a pixel's size with
a stride, which that accelerator computes wrongly in int8. Weights are drawn, each layer's output is
brought to one mean and spread over the example's images, as batch normalization would, and the last
layer is fitted to the labels. The int8 sister is what post-training quantization makes: scales from
the float network's values on those images, one scale for each channel of a convolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
from operator_chain import ChainStep, Floats, write_tflite
from tampering import EXAMPLE, InterpreterProbe, constant_of, weighted, with_constant
from tflite_weights import Weights, pruned

Kind = Literal["mobilenet", "resnet", "normalized", "pointwise"]

PAIR_TOML = """\
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[preprocess]
scale = 255.0
mean = [0.0]
std = [1.0]
"""

_CALIBRATION_IMAGES = 64
_RIDGE = 0.3
_PRUNED = 0.02
"""Share of the weights of each layer that a pruned network lacks: few, so that what deviates beside
it does so by its kernels."""

_SHARPNESS = 8.0
"""What the fitted scores of the right class are: its probability is high, and not 1 to the bit."""


@cache
def pair_of(kind: Kind, seed: int = 0, images: int = 200) -> tuple[bytes, bytes]:
    """The float network and its int8 sister, drawn from a seed."""
    drawing = _Drawing(np.random.default_rng(seed), _examples()[0][:images])
    {
        "mobilenet": _mobilenet,
        "resnet": _resnet,
        "normalized": _normalized,
        "pointwise": _pointwise,
    }[kind](drawing)
    drawing.classify(_examples()[1][:images])
    return drawing.written(), drawing.written(drawing.ranges())


def write_pair(folder: Path, kind: Kind, seed: int = 0) -> Path:
    """Write a pair folder; its seeds are the example's, those that all kernels label rightly."""
    raw = (_examples()[0].astype(np.int16) - 128).astype(np.int8)
    return _written_pair(folder, f"{kind}-like {seed}", *pair_of(kind, seed), raw)


def write_float_pair(folder: Path, kind: Kind, seed: int = 0, *, steep: int = 1) -> Path:
    """Write a pair folder of two float networks, the compressed one pruned; see `write_pair`.

    Args:
        folder: the pair's.
        kind: of network.
        seed: of its weights.
        steep: the outputs of the second convolution, a RELU, are so many times as large, and the
            weights that read them as much smaller: a power of two, so that nothing else changes.

    """
    original = pair_of(kind, seed)[0]
    if steep > 1:
        original = _steepened(original, steep)
    compressed = original
    for layer in range(len(Weights(original).layers)):
        compressed = pruned(Weights(compressed), layer, _PRUNED)
    real = _examples()[0].astype(np.float32) / 255
    return _written_pair(folder, f"float {kind} {seed}", original, compressed, real)


def _steepened(content: bytes, factor: int) -> bytes:
    first, second = weighted(content)[1:3]
    graph = Graph(content)
    assert graph.operators[first].outputs[0] == graph.operators[second].inputs[0]
    scales = ((first, 1, float(factor)), (first, 2, float(factor)), (second, 1, 1 / factor))
    for operator, position, scale in scales:
        name = constant_of(content, operator, position)
        content = with_constant(content, name, partial(np.multiply, scale))
    return content


def _written_pair(
    folder: Path, name: str, original: bytes, compressed: bytes, raw: NDArray[Any]
) -> Path:
    """Write a pair whose compressed model is given raw inputs."""
    images, labels = _examples()
    kept = _rightly(original, images.astype(np.float32) / 255, labels)
    for kernels in ("xnnpack", "builtin", "reference"):
        kept &= _rightly(compressed, raw, labels, kernels)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "original.tflite").write_bytes(original)
    (folder / "compressed.tflite").write_bytes(compressed)
    (folder / "pair.toml").write_text(f'name = "{name}"\n{PAIR_TOML}')
    np.savez_compressed(folder / "seeds.npz", images=images[kept], labels=labels[kept])
    return folder


def _rightly(content: bytes, inputs: NDArray[Any], labels: Any, kernels: Any = "xnnpack") -> Any:
    """Which inputs a model labels rightly, without a tie."""
    probe = InterpreterProbe(content, kernels)
    scores = np.stack([probe.run([one[None]])[0][0] for one in inputs])
    best = np.sort(scores, axis=1)
    return (scores.argmax(axis=1) == labels) & (best[:, -1] > best[:, -2])


@cache
def _examples() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        return arrays["images"], arrays["labels"]


# Architectures.


def _mobilenet(net: _Drawing) -> None:
    net.convolve(8, 3, stride=2, activation="RELU6")
    for expansion, filters, stride in ((1, 8, 1), (4, 12, 2), (4, 12, 1), (4, 16, 2), (4, 16, 1)):
        given, channels = net.last.name, net.last.shape[-1]
        if expansion > 1:
            net.convolve(channels * expansion, 1, activation="RELU6")
        net.convolve_depthwise(3, stride=stride, activation="RELU6")
        net.convolve(filters, 1)
        if stride == 1 and channels == filters:
            net.add(given)
    net.convolve(64, 1, activation="RELU6")


def _resnet(net: _Drawing) -> None:
    net.convolve(8, 3, stride=2, activation="RELU")
    for filters, stride in ((8, 1), (16, 2), (32, 2)):
        given = net.last.name
        shortcut = given
        net.convolve(filters, 3, stride=stride, activation="RELU")
        net.convolve(filters, 3)
        straight = net.last.name
        if stride > 1:
            net.convolve(filters, 1, stride=stride, source=given)
            shortcut = net.last.name
        net.add(shortcut, straight, activation="RELU")


def _normalized(net: _Drawing) -> None:
    for filters, stride in ((8, 2), (16, 2), (16, 1), (24, 2), (24, 1)):
        net.convolve(filters, 3, stride=stride, activation="RELU")
    net.normalize()
    net.convolve(32, 3, activation="RELU")


def _pointwise(net: _Drawing) -> None:
    net.convolve(8, 1, stride=2, activation="RELU")


# Drawing weights, and fitting them to the images.


@dataclass
class _Drawing:
    """A network that grows; each layer is fitted to what reaches it."""

    rng: np.random.Generator
    images: NDArray[np.uint8]
    steps: list[ChainStep] = field(default_factory=list)

    @property
    def last(self) -> ChainStep:
        return self.steps[-1]

    def shape(self, name: str) -> tuple[int, ...]:
        known = {step.name: step.shape for step in self.steps}
        return known.get(name, (1, *self.images.shape[1:]))

    def convolve(
        self,
        filters: int,
        size: int,
        *,
        stride: int = 1,
        activation: str = "NONE",
        source: str = "",
    ) -> None:
        source = source or (self.last.name if self.steps else "image")
        channels = self.shape(source)[-1]
        weights = self._drawn((filters, size, size, channels), size * size * channels)
        self._weighted("CONV_2D", source, weights, filters, stride, activation)

    def convolve_depthwise(self, size: int, *, stride: int, activation: str) -> None:
        channels = self.last.shape[-1]
        weights = self._drawn((1, size, size, channels), size * size)
        self._weighted("DEPTHWISE_CONV_2D", self.last.name, weights, channels, stride, activation)

    def add(self, *sources: str, activation: str = "NONE") -> None:
        both = sources if len(sources) == 2 else (self.last.name, *sources)
        self._append("ADD", both, self.shape(both[0]), activation=activation)

    def normalize(self) -> None:
        self._append("L2_NORMALIZATION", (self.last.name,), self.last.shape)

    def classify(self, labels: NDArray[np.int64]) -> None:
        """Add mean, dense layer and softmax, the dense layer by ridge regression on the labels."""
        self._append("MEAN", (self.last.name,), (1, self.last.shape[-1]))
        features = self.values(len(self.images))[self.last.name][:, 0].astype(np.float64)
        mean = features.mean(axis=0)
        wanted = _SHARPNESS * (np.eye(10)[labels] - 0.1)
        gram = (features - mean).T @ (features - mean)
        ridge = _RIDGE * np.trace(gram) / len(gram) / 100 * np.eye(len(gram))
        weights = np.linalg.solve(gram + ridge, (features - mean).T @ wanted).T
        self._append(
            "FULLY_CONNECTED",
            (self.last.name,),
            (1, 10),
            weights=weights.astype(np.float32),
            bias=(-weights @ mean).astype(np.float32),
        )
        self._append("SOFTMAX", (self.last.name,), (1, 10))

    def values(self, count: int = _CALIBRATION_IMAGES) -> dict[str, Floats]:
        """Return what each step puts out on the first images, (images, 1, …)."""
        probe = InterpreterProbe(self.written(), "builtin", capture=True)
        real = self.images[:count].astype(np.float32) / 255
        rows = [probe.run([image[None]]) for image in real]
        return {
            step.name: np.stack([row[at] for row in rows]) for at, step in enumerate(self.steps)
        }

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each tensor; zero is always between them."""
        found = {
            name: (min(0.0, float(seen.min())), max(0.0, float(seen.max())))
            for name, seen in self.values(len(self.images)).items()
        }
        lengths = [step.name for step in self.steps if step.operator == "L2_NORMALIZATION"]
        fixed = {**dict.fromkeys(lengths, (-1.0, 127 / 128)), self.last.name: (0.0, 255 / 256)}
        return {"image": (0.0, 1.0), **found, **fixed}

    def written(self, ranges: Mapping[str, tuple[float, float]] | None = None) -> bytes:
        return write_tflite(self.steps, self.shape("image"), ranges)

    def _drawn(self, shape: tuple[int, ...], fan_in: int) -> Floats:
        drawn: Floats = (self.rng.normal(size=shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        return drawn

    def _weighted(
        self,
        operator: str,
        source: str,
        weights: Floats,
        filters: int,
        stride: int,
        activation: str,
    ) -> None:
        """Add a convolution that puts out one mean and one spread in every channel."""
        _, height, width, _ = self.shape(source)
        shape = (1, -(-height // stride), -(-width // stride), filters)
        bias = np.zeros(filters, np.float32)
        self._append(operator, (source,), shape, weights=weights, bias=bias, stride=stride)
        seen = self.values()[self.last.name].reshape(-1, filters)
        mean, spread = seen.mean(axis=0), seen.std(axis=0) + 1e-3
        centre, width_wanted = (0.8, 1.3) if activation != "NONE" else (0.0, 1.0)
        factor = (width_wanted / spread).astype(np.float32)
        along = (-1, 1, 1, 1) if operator == "CONV_2D" else (1, 1, 1, -1)
        jitter = self.rng.normal(scale=0.3, size=filters)
        self.steps[-1] = replace(
            self.last,
            weights=weights * factor.reshape(along),
            bias=(centre + jitter - mean * factor).astype(np.float32),
            activation=activation,
        )

    def _append(
        self, operator: str, sources: tuple[str, ...], shape: tuple[int, ...], **more: Any
    ) -> None:
        name = f"{operator.lower()}_{len(self.steps)}"
        self.steps.append(ChainStep(name, operator, sources, shape, **more))
