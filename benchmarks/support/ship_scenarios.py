"""Pairs of real models as users bring them to `check`, with one defect each, or healthy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from litert_quantizer import recipe
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from edgeflare.diagnose.tensor_ties import tied_tensors
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from fault_injection import Planted
from prepared_weights import with_prepared_weights
from quantization_faults import Network, scaled_range, with_range
from requantizing import Converter, requantized
from scenario_models import (
    fitted_without,
    int8,
    of_other_inputs,
    pruned,
    shuffled,
    unread,
    weighted,
    weights_only,
    with_classes_in_order,
    with_constants,
    with_dead_channel,
    with_factors,
    with_half_pixels_off,
    with_ink_mask,
    with_output_range,
)

_REPOSITORY = Path(__file__).resolve().parents[2]

_UNIT = 'preset = "unit"\n'
_SIGNED = "scale = 127.5\nmean = [1.0]\nstd = [1.0]\n"


def generator(text: str) -> np.random.Generator:
    """Return a generator that is seeded with the hash of a text."""
    return np.random.default_rng(int(sha256(text.encode()).hexdigest()[:16], 16))


@dataclass(frozen=True)
class Material:
    """What a user brings.

    Attributes:
        original: the content of its file.
        compressed: likewise.
        arrays: the inputs, and what is right of them.
        described: the text of `pair.toml`.

    """

    original: bytes
    compressed: bytes
    arrays: Mapping[str, NDArray[Any]]
    described: str

    @classmethod
    def read(cls, folder: Path, described: Path | None = None) -> Material:
        """Return what lies in a folder.

        Args:
            folder: of a pair, with the usual names of files.
            described: another `pair.toml`.

        """
        text = (described or folder / "pair.toml").read_text()
        with np.load(folder / "seeds.npz") as arrays:
            return cls(
                (folder / "original.tflite").read_bytes(),
                (folder / "compressed.tflite").read_bytes(),
                dict(arrays),
                text.replace("variants/dynamic_range.tflite", "compressed.tflite"),
            )

    @property
    def images(self) -> NDArray[np.uint8]:
        """The pictures."""
        return np.asarray(self.arrays["images"], np.uint8)

    def made(self, **others: Any) -> Material:
        """Return the same with something else in it."""
        return replace(self, **others)

    def with_arrays(self, **arrays: NDArray[Any]) -> Material:
        """Return the same with some other arrays."""
        return replace(self, arrays={**self.arrays, **arrays})

    def saying(self, more: str) -> Material:
        """Return the same with more in `pair.toml`."""
        return replace(self, described=f"{self.described}\n{more}")

    def write(self, folder: Path) -> None:
        """Write the pair to a new folder."""
        folder.mkdir(parents=True)
        (folder / "original.tflite").write_bytes(self.original)
        (folder / "compressed.tflite").write_bytes(self.compressed)
        np.savez(folder / "seeds.npz", allow_pickle=False, **self.arrays)
        (folder / "pair.toml").write_text(self.described)


@dataclass(frozen=True)
class Scenario:
    """A pair, and what is right to say of it.

    Attributes:
        name: of the pair.
        kind: of the defect, or "healthy".
        verdict: that is right.
        build: makes the pair.
        rules: that name the defect.
        words: one of which, in lower case, stands in the sentence that names it; empty where the
            rule says it.
        device: that is asked.
        planted: a fault of the device.

    """

    name: str
    kind: str
    verdict: str
    build: Callable[[], Material]
    rules: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    device: str = "emulated-xnnpack"
    planted: Planted | None = None


@dataclass(frozen=True)
class Sources:
    """The pairs that scenarios are made of.

    Attributes:
        pairs: the folder of the development pairs; None without.
        seed: a text by whose hash things are drawn.

    """

    pairs: Path | None
    seed: str
    _known: dict[str, Material] = field(default_factory=dict)

    def rng(self, name: str) -> np.random.Generator:
        """Return a generator for a scenario, independent of which others there are."""
        return generator(f"{self.seed}/{name}")

    @cached_property
    def fashion(self) -> Material:
        """The classifier of garments that ships as an example."""
        return Material.read(_REPOSITORY / "examples" / "fashion_lenet4")

    @cached_property
    def words(self) -> Material:
        """The classifier of spoken words that does."""
        return Material.read(_REPOSITORY / "examples" / "spoken_words")

    @cached_property
    def faces(self) -> Material:
        """The detector of faces that does."""
        return Material.read(_REPOSITORY / "examples" / "face_detection")

    def case(self, name: str) -> Material:
        """Return a pair of tests/cases."""
        return Material.read(_REPOSITORY / "tests" / "cases" / name)

    def digits(self, name: str) -> Material:
        """Return a pair of tests/cases that sees digits, with more of them."""
        rng, digits = self.rng("digits"), load_digits()
        some = rng.permutation(len(digits.images))[:300]
        large = np.kron(digits.images[some], np.ones((2, 2))) * 255 / 16
        noise = rng.integers(0, 16, large.shape)
        images = np.clip(large + noise, 0, 255).astype(np.uint8)[..., None]
        arrays = {"images": images, "labels": digits.target[some].astype(np.int64)}
        return self.case(name).made(arrays=arrays)

    def pair(self, name: str, limit: int = 250) -> Material:
        """Return a development pair, with some of its inputs."""
        assert self.pairs is not None
        folder = self.pairs / name
        described = folder / "pair.toml"
        if not described.is_file():
            described = _REPOSITORY / "tests" / "pairs" / name / "pair.toml"
        found = Material.read(folder, described)
        count = min(limit, max(len(one) for one in found.arrays.values() if one.ndim))
        return found.made(
            arrays={
                name: values[:count] if values.ndim and len(values) > count else values
                for name, values in found.arrays.items()
            }
        )


def _unit(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.asarray(images.astype(np.float32) / np.float32(255))


def _cifar(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    mean = np.array([0.4914, 0.4822, 0.4465], np.float32)
    std = np.array([0.247, 0.2435, 0.2616], np.float32)
    return np.asarray((_unit(images) - mean) / std, np.float32)


def as_raw(source: Material) -> NDArray[np.int8]:
    """Return pictures as an int8 model takes them: grey ones as 0 to 1, others as of CIFAR-10."""
    graph = Graph(source.compressed)
    images = source.images
    real = _unit(images) if images.shape[-1] == 1 else _cifar(images)
    raw = graph.tensors[graph.inputs[0]].raw(real.astype(np.float64))
    return np.asarray(raw, np.int8)


def scenarios(sources: Sources) -> Iterator[Scenario]:
    """Yield the scenarios that can be made of what there is."""
    shipped = (_stages, _orders, _calibration, _ranges, _constants, _kernels, _data, _training)
    for of_what in (*shipped, _healthy, _healthy_but_odd):
        yield from of_what(sources)
    if sources.pairs is not None:
        for of_what in (_of_pictures, _of_other_pairs, _healthy_of_pairs):
            yield from of_what(sources)


# With a defect.


def _stages(sources: Sources) -> Iterator[Scenario]:
    """Yield defects before and behind the model."""
    no = "do-not-ship"
    fashion = sources.fashion
    yield Scenario(
        "signed_app",
        "the device scales otherwise, and says so",
        no,
        lambda: fashion.saying(f"[device.preprocess]\n{_SIGNED}"),
        ("stages",),
        ("[device.preprocess]",),
    )
    yield Scenario(
        "loud_app",
        "the device normalizes sounds otherwise, and says so",
        no,
        lambda: sources.words.saying(
            "[device.inputs.sound]\nfront_end.mean = 0.0\nfront_end.std = 1.0\n"
        ),
        ("stages",),
        ("[device",),
    )
    yield Scenario(
        "signed_file",
        "the file was made for another preprocessing",
        no,
        lambda: fashion.made(compressed=_signed_file(fashion)),
        ("preprocessing",),
        ("signed", "-1 to 1", "−1 to 1"),
    )
    yield Scenario(
        "strict_detector",
        "the device's threshold is another one",
        no,
        lambda: sources.faces.saying("[device.task]\nthreshold = 0.95\n"),
        ("stages",),
        ("[device.task]",),
    )
    yield Scenario(
        "silent_signed_app",
        "the device scales otherwise, and nobody says so",
        no,
        lambda: fashion,
        ("kernels", "preprocessing", "stages"),
        ("preprocessed", "other inputs"),
        "double",
        Planted("preprocessed for -1 to 1"),
    )


def _orders(sources: Sources) -> Iterator[Scenario]:
    """Yield classes and outputs in another order."""
    no = "do-not-ship"
    fashion = sources.fashion
    yield Scenario(
        "other_order",
        "label order",
        no,
        lambda: sources.words.made(
            compressed=with_classes_in_order(sources.words.compressed, range(9, -1, -1))
        ),
        ("order",),
        ("order",),
    )
    yield Scenario(
        "two_exchanged",
        "two labels exchanged in the file",
        no,
        lambda: fashion.made(
            compressed=with_classes_in_order(fashion.compressed, [0, 1, 2, 3, 4, 7, 6, 5, 8, 9])
        ),
        ("order",),
        ("sandal", "sneaker"),
    )
    yield Scenario(
        "heads_exchanged",
        "two outputs exchanged",
        no,
        lambda: sources.case("output_swapped"),
        ("order",),
        ("outputs",),
    )


def _calibration(sources: Sources) -> Iterator[Scenario]:
    """Yield defects of calibration."""
    no = "do-not-ship"
    fashion = sources.fashion
    yield Scenario(
        "dark_calibration",
        "calibrated on dark pictures",
        no,
        lambda: fashion.made(
            compressed=int8(fashion.original, _unit(fashion.images[:100]) * np.float32(0.3))
        ),
        ("range",),
        ("input holds", "saturated"),
    )
    yield Scenario(
        "indoors_only",
        "a field condition: calibrated on pictures of half the light",
        no,
        lambda: fashion.made(
            compressed=int8(fashion.original, _unit(fashion.images[:100]) * np.float32(0.5))
        ),
        ("field",),
        ("frost", "fog", "brightness", "contrast"),
    )
    yield Scenario(
        "few_sounds",
        "calibrated on a single sound",
        no,
        lambda: _calibrated_on_few(sources),
        ("range", "layer"),
        ("saturated", "lie beyond"),
    )
    yield Scenario(
        "bright_faces",
        "a detector calibrated on pictures of 0 to 1",
        no,
        lambda: sources.faces.made(
            compressed=int8(sources.faces.original, _unit(sources.faces.images[:20]))
        ),
        ("range",),
        ("input holds", "saturated"),
    )


def _ranges(sources: Sources) -> Iterator[Scenario]:
    """Yield steps and ranges that do not fit."""
    no = "do-not-ship"
    fashion = sources.fashion
    yield Scenario(
        "one_scale",
        "one scale for unlike channels",
        no,
        lambda: _one_scale(fashion),
        ("layer",),
        ("conv_2d (operator 0)",),
    )
    yield Scenario(
        "narrow_layer",
        "the range of a middle layer is too narrow",
        no,
        lambda: _narrow(fashion),
        ("range",),
        ("conv_2d (operator 2)", "max_pool_2d (operator 3)"),
    )
    yield Scenario(
        "clipped_value",
        "clipped regression",
        no,
        lambda: _regression(sources.digits("regression_saturates"), 0, 60),
        ("range",),
        ("cut off", "saturated"),
    )


def _constants(sources: Sources) -> Iterator[Scenario]:
    """Yield other constants."""
    no = "do-not-ship"
    fashion = sources.fashion
    yield Scenario(
        "wrong_fold",
        "wrong fold of a batch norm",
        no,
        lambda: _wrong_fold(sources.words, weighted(sources.words.compressed)[4], sources),
        ("layer",),
        ("conv_2d (operator 4)",),
    )
    yield Scenario(
        "shifted_value",
        "a value that is too high",
        no,
        lambda: _regression(sources.digits("regression_saturates"), -40, 115, shift=12),
        ("one-sided", "layer"),
        ("higher", "lower", "fully_connected (operator 4)"),
    )
    yield Scenario(
        "floored",
        "weights rounded down",
        no,
        lambda: _floored(sources.digits("regression_saturates")),
        ("one-sided", "layer"),
        ("higher", "lower", "off by"),
    )
    yield Scenario(
        "other_head",
        "the last layer was fitted without a class",
        no,
        lambda: _without_a_class(fashion, 6, 0.0),
        ("class", "layer"),
        ("shirt", "fully_connected"),
    )
    yield Scenario(
        "half_overflow",
        "NaN",
        no,
        lambda: _half_overflow(fashion),
        ("failures",),
        ("nan",),
    )
    yield Scenario(
        "two_bits",
        "NaN that later layers swallow",
        no,
        lambda: fashion.made(
            compressed=weights_only(fashion.original, recipe.dynamic_wi2c_afp32())
        ),
        ("failures", "file", "layer"),
        ("conv_2d (operator 0)",),
    )


def _kernels(sources: Sources) -> Iterator[Scenario]:
    """Yield defects of the device."""
    no = "do-not-ship"
    fashion = sources.fashion
    layers = weighted(fashion.compressed)
    yield Scenario(
        "device_filters",
        "kernel fault",
        no,
        lambda: fashion,
        ("kernels",),
        ("conv_2d (operator 2)",),
        "double",
        Planted("filters in another order", _made_by(fashion.compressed, layers[1])),
    )
    yield Scenario(
        "device_rounding",
        "kernel fault",
        no,
        lambda: sources.words,
        ("kernels",),
        ("depthwise_conv_2d (operator 5)",),
        "double",
        Planted("rounded down to even", _made_by(sources.words.compressed, 5), 5.0),
    )
    yield Scenario(
        "ink_mask",
        "kernel fault of the built-in MUL",
        no,
        lambda: _with_mask(sources),
        ("kernels",),
        ("mul (operator",),
        "emulated-builtin",
    )
    yield Scenario(
        "stale_device",
        "the device answers to the input before",
        no,
        lambda: fashion,
        ("kernels",),
        ("does not compute", "twice"),
        "double",
        Planted("stale output"),
    )
    yield Scenario(
        "flaky_device",
        "the device answers otherwise each time",
        no,
        lambda: fashion,
        ("kernels",),
        ("twice",),
        "double",
        Planted("flaky"),
    )


def _data(sources: Sources) -> Iterator[Scenario]:
    """Yield data or originals that allow no verdict."""
    unsure = "undecided"
    fashion = sources.fashion
    yield Scenario(
        "labels_exchanged",
        "two labels exchanged in the data",
        unsure,
        lambda: fashion.with_arrays(labels=_exchanged(fashion.arrays["labels"], 5, 7)),
        ("data",),
        ("labels",),
    )
    yield Scenario(
        "labels_shuffled",
        "shuffled labels",
        unsure,
        lambda: fashion.with_arrays(
            labels=sources.rng("labels").permutation(fashion.arrays["labels"])
        ),
        ("data",),
        ("guessing",),
    )
    yield Scenario(
        "untrained",
        "an original at chance",
        unsure,
        lambda: _untrained(fashion, sources),
        ("data",),
        ("guessing",),
    )


def _training(sources: Sources) -> Iterator[Scenario]:
    """Yield models that were pruned too far, or lost a class."""
    no = "do-not-ship"
    fashion = sources.fashion
    yield Scenario(
        "pruned_too_far",
        "pruned too far",
        no,
        lambda: fashion.made(compressed=pruned(fashion.original, 0.9)),
        ("accuracy",),
        (),
    )
    yield Scenario(
        "pruned_half",
        "pruned too far",
        no,
        lambda: fashion.made(compressed=pruned(fashion.original, 0.5)),
        ("accuracy",),
        (),
    )
    yield Scenario(
        "pruned_rather_far",
        "pruned too far",
        no,
        lambda: fashion.made(compressed=pruned(fashion.original, 0.8)),
        ("accuracy",),
        (),
    )
    yield Scenario(
        "no_shirts",
        "a class collapses",
        no,
        lambda: _without_a_class(fashion, 6),
        ("class",),
        ("shirt",),
    )


def _of_pictures(sources: Sources) -> Iterator[Scenario]:
    """Yield defects of the residual network."""
    no = "do-not-ship"
    resnet = sources.pair("resnet20_cifar10_int8")
    yield Scenario(
        "blue_for_red",
        "BGR instead of RGB",
        no,
        lambda: resnet.made(
            compressed=int8(
                with_constants(resnet.original, {(0, 1): lambda values: values[..., ::-1]}),
                _cifar(resnet.images[:60, ..., ::-1]),
            )
        ),
        ("preprocessing",),
        ("reverse",),
    )
    yield Scenario(
        "silent_blue_device",
        "the device feeds BGR, and nobody says so",
        no,
        lambda: resnet,
        ("kernels", "preprocessing", "stages"),
        ("channels", "other inputs"),
        "double",
        Planted("channels swapped"),
    )
    yield Scenario(
        "unit_pair",
        "the pair's preprocessing is not the training's",
        "undecided",
        lambda: resnet.made(described=_told_unit(resnet.described)),
        ("data",),
        ("not trained on",),
    )
    yield Scenario(
        "lost_biases",
        "wrong fold of a batch norm: biases lost",
        no,
        lambda: resnet.made(compressed=with_constants(resnet.compressed, {(14, 2): np.zeros_like})),
        ("layer",),
        ("conv_2d (operator 14)",),
    )


def _of_other_pairs(sources: Sources) -> Iterator[Scenario]:
    """Yield defects of other development pairs."""
    no = "do-not-ship"
    tables = "tabular_cancer_2in_2out"
    yield Scenario(
        "other_state",
        "a state of another scale",
        no,
        lambda: _other_state(sources.pair("kws_digits_gru_state")),
        ("file",),
        ("state",),
    )
    yield Scenario(
        "half_pixels",
        "an option of a resizing",
        no,
        lambda: _other_resizing(sources),
        ("file",),
        ("resize_bilinear",),
    )
    yield Scenario(
        "unread_table",
        "an input that nothing reads",
        no,
        lambda: sources.pair(tables).made(compressed=unread(sources.pair(tables).compressed, 0)),
        ("file",),
        ("errors_and_worst",),
    )


def _healthy_but_odd(sources: Sources) -> Iterator[Scenario]:
    yes, fashion = "ship", sources.fashion
    yield Scenario(
        "healthy_few",
        "healthy",
        yes,
        lambda: fashion.with_arrays(
            images=fashion.images[:40], labels=fashion.arrays["labels"][:40]
        ),
    )
    yield Scenario(
        "healthy_unlabelled",
        "healthy",
        yes,
        lambda: fashion.made(arrays={"images": fashion.images}),
    )
    yield Scenario(
        "healthy_noisy_labels",
        "healthy",
        yes,
        lambda: fashion.with_arrays(labels=_noisy(fashion.arrays["labels"], sources)),
    )


# Healthy.


def _healthy(sources: Sources) -> Iterator[Scenario]:
    yes, fashion = "ship", sources.fashion

    def healthy(name: str, build: Callable[[], Material]) -> Scenario:
        return Scenario(name, "healthy", yes, build)

    yield healthy("healthy_int8", lambda: fashion)
    yield healthy(
        "healthy_float16",
        lambda: fashion.made(compressed=with_prepared_weights(fashion.original, ["DEQUANTIZE"])),
    )
    yield healthy(
        "healthy_dynamic_range",
        lambda: fashion.made(compressed=weights_only(fashion.original, recipe.dynamic_wi8_afp32())),
    )
    yield healthy("healthy_pruned", lambda: fashion.made(compressed=pruned(fashion.original, 0.3)))
    yield healthy("healthy_weak", lambda: _weak(fashion, sources))
    yield healthy("healthy_ties", lambda: _flat(fashion))
    yield healthy(
        "healthy_int4",
        lambda: sources.digits("int4_weights").made(
            compressed=weights_only(
                sources.digits("int4_weights").original, recipe.weight_only_wi4_afp32()
            )
        ),
    )
    yield healthy("healthy_sounds", lambda: sources.words)
    yield healthy("healthy_detector", lambda: sources.faces)
    yield healthy(
        "healthy_regression",
        lambda: _regression(sources.digits("regression_saturates"), -40, 115),
    )


def _healthy_of_pairs(sources: Sources) -> Iterator[Scenario]:
    yes = "ship"
    segmentation = "selfie_segmentation_int8"
    yield Scenario(
        "healthy_fine_tuned",
        "healthy",
        yes,
        lambda: sources.pair("lenet4_fashion_pruned70_ft"),
    )
    yield Scenario(
        "healthy_segmentation",
        "healthy",
        yes,
        lambda: sources.pair(segmentation).made(
            compressed=_variant(sources, segmentation, "dynamic_range.tflite")
        ),
    )
    yield Scenario(
        "healthy_residual", "healthy", yes, lambda: sources.pair("resnet20_cifar10_int8")
    )
    yield Scenario("healthy_state", "healthy", yes, lambda: sources.pair("kws_digits_gru_state"))


# What they are made by.


def _made_by(content: bytes, operator: int) -> str:
    """Return the name of what an operator puts out."""
    graph = Graph(content)
    return graph.tensors[graph.operators[operator].outputs[0]].name


def _variant(sources: Sources, name: str, file: str) -> bytes:
    assert sources.pairs is not None
    return (sources.pairs / name / "variants" / file).read_bytes()


def _signed_file(fashion: Material) -> bytes:
    signed = of_other_inputs(fashion.original, 2.0, -1.0)
    return int8(signed, 2 * _unit(fashion.images[:100]) - 1)


def _calibrated_on_few(sources: Sources) -> Material:
    """Narrow the words' activations to what noise of a quarter of the usual strength reaches."""
    words = sources.words
    shape = Graph(words.original).tensors[Graph(words.original).inputs[0]].shape
    sound = sources.rng("few_sounds").normal(-1.0, 0.25, shape).astype(np.float32)
    return words.made(compressed=int8(words.original, sound))


def _one_scale(fashion: Material) -> Material:
    original = with_dead_channel(fashion.original, 0, 2, 60.0)
    fine = int8(original, _unit(fashion.images[:100]))
    return fashion.made(
        original=original, compressed=requantized(original, fine, Converter(per_tensor=True))
    )


def _wrong_fold(source: Material, operator: int, sources: Sources) -> Material:
    graph = Graph(source.compressed)
    channels = len(graph.tensors[graph.operators[operator].inputs[1]].scales)
    factors = sources.rng("wrong_fold").choice([0.25, 4.0], channels)
    return source.made(compressed=with_factors(source.compressed, operator, factors))


def _regression(source: Material, low: float, high: float, shift: int = 0) -> Material:
    scale = (high - low) / 255
    zero_point = round(-128 - low / scale)
    content = with_output_range(source.compressed, scale, zero_point)
    if shift:
        content = _claiming(content, scale, zero_point - shift)
    arrays = {"images": source.images}
    return source.made(compressed=content, arrays=arrays)


def _claiming(content: bytes, scale: float, zero_point: int) -> bytes:
    """Return a file whose last layer has its bias moved, as if its zero point were another one."""
    graph = Graph(content)
    last = weighted(content)[-1]
    bias = graph.tensors[graph.operators[last].inputs[2]]
    (output,) = graph.outputs
    off = (graph.tensors[output].zero_points[0] - zero_point) * scale / bias.scales[0]
    return with_constants(content, {(last, 2): lambda values: values + round(off)})


def _with_mask(sources: Sources) -> Material:
    fashion = sources.fashion
    original = with_ink_mask(fashion.original)
    return fashion.made(original=original, compressed=int8(original, _unit(fashion.images[:100])))


def _half_overflow(fashion: Material) -> Material:
    original = with_dead_channel(fashion.original, 0, 2, 1e5)
    return fashion.made(
        original=original, compressed=with_prepared_weights(original, ["DEQUANTIZE"])
    )


def _exchanged(labels: NDArray[np.int64], one: int, other: int) -> NDArray[np.int64]:
    exchanged = np.where(labels == one, other, np.where(labels == other, one, labels))
    return exchanged.astype(np.int64)


def _untrained(fashion: Material, sources: Sources) -> Material:
    original = shuffled(fashion.original, sources.rng("untrained"))
    return fashion.made(original=original, compressed=int8(original, _unit(fashion.images[:100])))


def _without_a_class(fashion: Material, lost: int, share: float = 0.5) -> Material:
    labels = np.asarray(fashion.arrays["labels"], np.int64)
    fitted = fitted_without(pruned(fashion.original, share), _unit(fashion.images), labels, lost)
    return fashion.made(compressed=int8(fitted, _unit(fashion.images[:100])))


def _floored(source: Material) -> Material:
    """Round all weights down in place of to the nearest."""
    healthy = _regression(source, -40, 115)
    graph, original = Graph(healthy.compressed), Graph(healthy.original)
    changes = {}
    for one, its in zip(weighted(healthy.compressed), weighted(healthy.original), strict=True):
        weights = graph.tensors[graph.operators[one].inputs[1]]
        real = original.values(original.operators[its].inputs[1])
        steps = np.asarray(weights.scales).reshape(-1, *[1] * (real.ndim - 1))
        floor = np.clip(np.floor(real / steps), -127, 127)
        changes[one, 1] = _constant(floor)
    return healthy.made(compressed=with_constants(healthy.compressed, changes))


def _constant(values: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda _: values


def _narrow(fashion: Material) -> Material:
    network = Network(fashion.compressed, fashion.original)
    groups = tied_tensors(network.graph)
    operator = weighted(fashion.compressed)[1]
    group = next(one for one in groups if network.graph.made_by[one.sources[0]] == operator)
    return fashion.made(
        compressed=with_range(
            network, group, scaled_range(network, group, 0.1), "ranges", 0.1
        ).content
    )


def _noisy(labels: NDArray[Any], sources: Sources) -> NDArray[np.int64]:
    """Draw a quarter of the labels anew."""
    rng = sources.rng("noisy")
    drawn = rng.integers(0, 10, len(labels))
    return np.where(rng.random(len(labels)) < 0.25, drawn, labels).astype(np.int64)


def _told_unit(described: str) -> str:
    lines = [one for one in described.splitlines() if not one.startswith(("scale", "mean", "std"))]
    at = next(place for place, one in enumerate(lines) if one.startswith("[preprocess]"))
    return "\n".join([*lines[: at + 1], _UNIT, *lines[at + 1 :]])


def _other_state(state: Material) -> Material:
    graph = Graph(state.compressed)
    made = graph.outputs[1]
    known = graph.tensors[made]
    edit = InPlaceEdit(state.compressed)
    edit.set_quantization(made, [known.scales[0] / 2], known.zero_points)
    return state.made(compressed=edit.content())


def _other_resizing(sources: Sources) -> Material:
    name = "selfie_segmentation_int8"
    content = _variant(sources, name, "dynamic_range.tflite")
    return sources.pair(name).made(compressed=with_half_pixels_off(content, 3))


def _weak(fashion: Material, sources: Sources) -> Material:
    """Make pictures so noisy that the original is right on about half of them."""
    rng = sources.rng("weak")
    noisy = fashion.images.astype(np.int64) + rng.normal(0, 90, fashion.images.shape).round()
    images = np.clip(noisy, 0, 255).astype(np.uint8)
    return fashion.with_arrays(images=images).made(
        compressed=int8(fashion.original, _unit(images[:100]))
    )


def _flat(fashion: Material) -> Material:
    last = weighted(fashion.original)[-1]
    original = with_constants(
        fashion.original,
        {(last, 1): lambda values: values * 0.08, (last, 2): lambda values: values * 0.08},
    )
    return fashion.made(original=original, compressed=int8(original, _unit(fashion.images[:100])))
