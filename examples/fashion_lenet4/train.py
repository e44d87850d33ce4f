"""Train, quantize and pack the example pair from Fashion-MNIST's IDX files.

    python train.py /usr/share/datasets/fashion-mnist --out .

Needs the packages of requirements.txt and no network. Every draw comes from one seed, so that two
runs on one machine write the same files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import struct
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SEED = 0
EPOCHS = 8
THREADS = 2
SCALE = 255.0  # model input = pixel / SCALE
CALIBRATION_IMAGES = 500
SEEDS_PER_CLASS = 20
CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip

KERNELS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}

PROVENANCE = {
    "data": "Fashion-MNIST, MIT licence, Copyright 2017 Zalando SE",
    "architecture": "LeNet-4: 6 and 16 filters of 5 x 5, 120 hidden units",
    "epochs": EPOCHS,
    "seed": SEED,
    "seeds_per_class": SEEDS_PER_CLASS,
}

PAIR_TOML = f"""\
name = "fashion_lenet4"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"
classes = {json.dumps(CLASSES)}

[preprocess]   # model input = (pixel / scale - mean) / std
scale = {SCALE}
mean = [0.0]
std = [1.0]
"""


class Split(NamedTuple):
    """The images, uint8 of shape (n, 28, 28, 1), and their labels, int64 of shape (n,)."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def main() -> None:
    """Write the whole pair into a folder."""
    arguments = parse_arguments()
    train_set, test_set = read_split(arguments.data, "train"), read_split(arguments.data, "t10k")

    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    model = trained_lenet4(train_set)
    original, compressed = as_float(model), as_int8(model, train_set)

    print("evaluating both models on the test set")
    expected = raw_outputs(original, test_set.images, KERNELS["xnnpack"])
    quantized = {
        name: raw_outputs(compressed, test_set.images, kernels) for name, kernels in KERNELS.items()
    }
    picked = pick_by_class(undisputed([expected, *quantized.values()]), test_set.labels)
    measured = {
        "accuracy": {
            "original": accuracy(expected, test_set.labels),
            "compressed": accuracy(quantized["xnnpack"], test_set.labels),
        },
        "compressed_against_original": {
            name: disagreements(expected, raw) for name, raw in quantized.items()
        },
        "compressed_against_itself_on_xnnpack": {
            name: disagreements(quantized["xnnpack"], quantized[name])
            for name in ("builtin", "reference")
        },
    }

    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "original.tflite").write_bytes(original)
    (out / "compressed.tflite").write_bytes(compressed)
    (out / "pair.toml").write_text(PAIR_TOML, encoding="utf-8")
    np.savez_compressed(
        out / "seeds.npz",
        images=test_set.images[picked],
        labels=test_set.labels[picked],
        test_indices=picked,
    )
    (out / "meta.json").write_text(
        json.dumps({**PROVENANCE, "versions": versions(), **measured}, indent=2) + "\n",
        encoding="utf-8",
    )
    print(json.dumps(measured, indent=2))


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train, quantize and pack the example pair.")
    parser.add_argument("data", type=Path, help="folder with Fashion-MNIST's four IDX files")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="default: here")
    return parser.parse_args()


def read_split(folder: Path, prefix: str) -> Split:
    """Read `PREFIX-images-idx3-ubyte` and `PREFIX-labels-idx1-ubyte`, plain or gzipped."""
    images = read_idx(folder / f"{prefix}-images-idx3-ubyte")
    labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte")
    return Split(images[..., np.newaxis], labels.astype(np.int64))


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes: 0, 0, 8, rank, sizes as big-endian uint32, data."""
    gzipped = path.with_name(path.name + ".gz")
    if path.is_file():
        content = path.read_bytes()
    elif gzipped.is_file():
        content = gzip.decompress(gzipped.read_bytes())
    else:
        sys.exit(f"{path.parent} has neither {path.name} nor {gzipped.name}.")
    rank = content[3]
    shape = struct.unpack_from(f">{rank}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def as_input(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Preprocess images, as `pair.toml` says."""
    return images.astype(np.float32) / np.float32(SCALE)


def trained_lenet4(data: Split) -> keras.Model:
    """Train a LeNet-4 whose outputs are probabilities."""
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(6, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(len(CLASSES), activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(as_input(data.images), data.labels, batch_size=64, epochs=EPOCHS, verbose=2)
    return model


def as_float(model: keras.Model) -> bytes:
    """Convert a model as it is, to float32."""
    return tf.lite.TFLiteConverter.from_keras_model(model).convert()


def as_int8(model: keras.Model, data: Split) -> bytes:
    """Quantize a model to int8 weights, activations, input and output."""
    chosen = np.random.default_rng(SEED).choice(len(data.images), CALIBRATION_IMAGES, replace=False)

    def calibration() -> Iterator[list[Any]]:
        for image in as_input(data.images[chosen]):
            yield [image[np.newaxis]]

    to_int8 = tf.lite.TFLiteConverter.from_keras_model(model)
    to_int8.optimizations = [tf.lite.Optimize.DEFAULT]
    to_int8.representative_dataset = calibration
    to_int8.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    to_int8.inference_input_type = to_int8.inference_output_type = tf.int8
    return to_int8.convert()


def raw_outputs(model: bytes, images: NDArray[np.uint8], kernels: OpResolverType) -> NDArray[Any]:
    """Run a `.tflite` model on images, of shape (n, 28, 28, 1) → (n, 10), int8 or float32."""
    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=kernels, num_threads=1
    )
    interpreter.allocate_tensors()
    (entry,), (exit_,) = interpreter.get_input_details(), interpreter.get_output_details()
    inputs = as_input(images)
    if entry["dtype"] == np.int8:
        scale, zero_point = entry["quantization"]
        inputs = np.clip(np.round(inputs / scale) + zero_point, -128, 127).astype(np.int8)
    outputs = []
    for image in inputs:
        interpreter.set_tensor(entry["index"], image[np.newaxis])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(exit_["index"])[0])
    return np.stack(outputs)


def tied(raw: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which rows have two equal largest values, of shape (n, classes) → (n,)."""
    ordered = np.sort(raw, axis=1)
    return ordered[:, -1] == ordered[:, -2]


def undisputed(raws: list[NDArray[Any]]) -> NDArray[np.int64]:
    """List the images that get the same label from all outputs, and a tie from none."""
    labels = np.stack([raw.argmax(axis=1) for raw in raws])
    same = (labels == labels[0]).all(axis=0)
    return np.flatnonzero(same & ~np.any([tied(raw) for raw in raws], axis=0))


def pick_by_class(candidates: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw equally many candidates of every class, in the order of the test set."""
    rng = np.random.default_rng(SEED)
    drawn = [
        rng.choice(candidates[labels[candidates] == label], SEEDS_PER_CLASS, replace=False)
        for label in range(len(CLASSES))
    ]
    return np.sort(np.concatenate(drawn))


def accuracy(raw: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Return the fraction of right labels, to four digits."""
    return round(float(np.mean(raw.argmax(axis=1) == labels)), 4)


def disagreements(raw: NDArray[Any], other: NDArray[Any]) -> dict[str, int]:
    """Count the images with two labels, and those among them where either side is tied."""
    differ = raw.argmax(axis=1) != other.argmax(axis=1)
    return {
        "different_labels": int(differ.sum()),
        "of_which_ties": int((differ & (tied(raw) | tied(other))).sum()),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that shape the files."""
    packages = ("ai-edge-litert", "keras", "numpy", "tensorflow-cpu")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


if __name__ == "__main__":
    main()
