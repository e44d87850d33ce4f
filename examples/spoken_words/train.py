"""Train, quantize and pack the example pair of spoken words.

    python train.py --out .

Needs espeak-ng, the packages of requirements.txt, EdgeFlare's front end, and no network. Every
draw comes from one seed and training has one thread, so that two runs on one machine write the same
files.
"""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from synthesize import (
    ACCENTS,
    SAMPLE_RATE,
    SAMPLES,
    TEST_VARIANTS,
    TRAINING_VARIANTS,
    WORDS,
    Clips,
    espeak_version,
    spoken_clips,
)

from edgeflare.domains.audio.log_mel import LogMel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SEED = 0
EPOCHS = 16
FILTERS = 48
TRAINING_DRAWS = 4  # clips of each word, accent and variant
TEST_DRAWS = 6
CALIBRATION_CLIPS = 500
SEEDS_PER_WORD = 10

FRONT_END = LogMel(
    sample_rate=SAMPLE_RATE,
    frame_length=256,
    frame_step=128,
    fft_length=256,
    bands=32,
    lowest_hz=60.0,
    highest_hz=3800.0,
    mean=-1.2,  # of the training clips, about; so is the standard deviation
    std=1.4,
)

KERNELS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}

PROVENANCE = {
    "data": "words spoken by espeak-ng, in noise",
    "architecture": f"DS-CNN: a convolution and four depthwise separable ones of {FILTERS} filters",
    "epochs": EPOCHS,
    "seed": SEED,
    "seeds_per_word": SEEDS_PER_WORD,
    "accents": ACCENTS,
    "training_variants": TRAINING_VARIANTS,
    "test_variants": TEST_VARIANTS,
}


def main() -> None:
    """Write the whole pair into a folder."""
    out = parse_arguments().out
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)

    print("speaking the words")
    rng = np.random.default_rng(SEED)
    training = spoken_clips(TRAINING_VARIANTS, TRAINING_DRAWS, rng)
    test = spoken_clips(TEST_VARIANTS, TEST_DRAWS, rng)
    features, test_features = as_input(training.waves), as_input(test.waves)
    model = trained_ds_cnn(features, training.labels)
    original, compressed = as_float(model), as_int8(model, features)

    print("evaluating both models on the test clips")
    expected = raw_outputs(original, test_features, KERNELS["xnnpack"])
    quantized = {
        name: raw_outputs(compressed, test_features, kernels) for name, kernels in KERNELS.items()
    }
    picked = pick_by_word(undisputed([expected, *quantized.values()]), test.labels)
    measured = {
        "clips": {"training": len(training.waves), "test": len(test.waves)},
        "features": {
            "mean": round(float(features.mean()), 3),
            "std": round(float(features.std()), 3),
        },
        "accuracy": {
            "original": accuracy(expected, test.labels),
            "compressed": accuracy(quantized["xnnpack"], test.labels),
        },
        "seeds": {"right": int((expected[picked].argmax(axis=1) == test.labels[picked]).sum())},
        "compressed_against_original": {
            name: disagreements(expected, raw) for name, raw in quantized.items()
        },
        "compressed_against_itself_on_xnnpack": {
            name: disagreements(quantized["xnnpack"], quantized[name])
            for name in ("builtin", "reference")
        },
    }
    write_pair(out, original, compressed, Clips(test.waves[picked], test.labels[picked]), measured)
    print(json.dumps(measured, indent=2))


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train, quantize and pack the example pair.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="default: here")
    return parser.parse_args()


def write_pair(
    out: Path, original: bytes, compressed: bytes, seeds: Clips, measured: dict[str, Any]
) -> None:
    """Write the models, the seeds, `pair.toml` and `meta.json`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "original.tflite").write_bytes(original)
    (out / "compressed.tflite").write_bytes(compressed)
    np.savez_compressed(
        out / "seeds.npz",
        waves=seeds.waves,
        labels=seeds.labels,
        sample_rate=np.array(SAMPLE_RATE),
    )
    (out / "pair.toml").write_text(pair_toml(), encoding="utf-8")
    (out / "meta.json").write_text(
        json.dumps({**PROVENANCE, "versions": versions(), **measured}, indent=2) + "\n",
        encoding="utf-8",
    )


def pair_toml() -> str:
    """Return the pair's file, with the front end that the models were trained with."""
    fields = asdict(FRONT_END)
    del fields["sample_rate"]  # which the input says
    stated = [f"{key} = {json.dumps(value)}" for key, value in fields.items() if value is not None]
    return "\n".join(
        [
            'name = "spoken-words"',
            'original = "original.tflite"',
            'compressed = "compressed.tflite"',
            'seeds = "seeds.npz"',
            f"classes = {json.dumps(WORDS)}",
            "",
            "[inputs.sound]",
            'domain = "audio"',
            f"sample_rate = {SAMPLE_RATE}",
            f"samples = {SAMPLES}",
            "",
            "[inputs.sound.front_end]",
            'name = "log-mel"',
            *stated,
            "",
        ]
    )


def as_input(waves: NDArray[np.int16]) -> NDArray[np.float32]:
    """Return what the models take, as `pair.toml` says: (clips, frames, bands, 1)."""
    return FRONT_END.features(waves)[..., np.newaxis]


def trained_ds_cnn(features: NDArray[np.float32], labels: NDArray[np.int64]) -> keras.Model:
    """Train a depthwise separable network whose outputs are probabilities."""
    layers = keras.layers
    inputs = layers.Input(features.shape[1:])
    hidden = layers.Conv2D(FILTERS, (10, 4), strides=2, padding="same", use_bias=False)(inputs)
    hidden = layers.ReLU()(layers.BatchNormalization()(hidden))
    for strides in (2, 1, 1, 1):
        hidden = layers.DepthwiseConv2D(3, strides, padding="same", use_bias=False)(hidden)
        hidden = layers.ReLU()(layers.BatchNormalization()(hidden))
        hidden = layers.Conv2D(FILTERS, 1, use_bias=False)(hidden)
        hidden = layers.ReLU()(layers.BatchNormalization()(hidden))
    pooled = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(hidden))
    model = keras.Model(inputs, layers.Dense(len(WORDS), activation="softmax")(pooled))
    steps = EPOCHS * -(-len(features) // 64)
    schedule = keras.optimizers.schedules.CosineDecay(2e-3, steps)
    model.compile(
        keras.optimizers.Adam(schedule), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(features, labels, batch_size=64, epochs=EPOCHS, verbose=2)
    return model


def as_float(model: keras.Model) -> bytes:
    """Convert a model as it is, to float32."""
    return tf.lite.TFLiteConverter.from_keras_model(model).convert()


def as_int8(model: keras.Model, features: NDArray[np.float32]) -> bytes:
    """Quantize a model to int8 weights, activations, input and output."""
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(len(features), CALIBRATION_CLIPS, replace=False)

    def calibration() -> Iterator[list[Any]]:
        for one in features[chosen]:
            yield [one[np.newaxis]]

    to_int8 = tf.lite.TFLiteConverter.from_keras_model(model)
    to_int8.optimizations = [tf.lite.Optimize.DEFAULT]
    to_int8.representative_dataset = calibration
    to_int8.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    to_int8.inference_input_type = to_int8.inference_output_type = tf.int8
    return to_int8.convert()


def raw_outputs(
    model: bytes, features: NDArray[np.float32], kernels: OpResolverType
) -> NDArray[Any]:
    """Run a `.tflite` model on features: (clips, words), int8 or float32."""
    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=kernels, num_threads=1
    )
    interpreter.allocate_tensors()
    (entry,), (exit_,) = interpreter.get_input_details(), interpreter.get_output_details()
    inputs = features
    if entry["dtype"] == np.int8:
        scale, zero_point = entry["quantization"]
        inputs = np.clip(np.round(inputs / scale) + zero_point, -128, 127).astype(np.int8)
    outputs = []
    for one in inputs:
        interpreter.set_tensor(entry["index"], one[np.newaxis])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(exit_["index"])[0])
    return np.stack(outputs)


def tied(raw: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which rows have two equal largest values, of shape (n, words) → (n,)."""
    ordered = np.sort(raw, axis=1)
    return ordered[:, -1] == ordered[:, -2]


def undisputed(raws: list[NDArray[Any]]) -> NDArray[np.int64]:
    """List the clips that get the same label from all outputs, and a tie from none."""
    labels = np.stack([raw.argmax(axis=1) for raw in raws])
    same = (labels == labels[0]).all(axis=0)
    return np.flatnonzero(same & ~np.any([tied(raw) for raw in raws], axis=0))


def pick_by_word(candidates: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw equally many candidates of every word, in the order of the test clips."""
    rng = np.random.default_rng(SEED)
    drawn = [
        rng.choice(candidates[labels[candidates] == label], SEEDS_PER_WORD, replace=False)
        for label in range(len(WORDS))
    ]
    return np.sort(np.concatenate(drawn))


def accuracy(raw: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Return the fraction of right labels, to four digits."""
    return round(float(np.mean(raw.argmax(axis=1) == labels)), 4)


def disagreements(raw: NDArray[Any], other: NDArray[Any]) -> dict[str, int]:
    """Count the clips with two labels, and those among them where either side is tied."""
    differ = raw.argmax(axis=1) != other.argmax(axis=1)
    return {
        "different_labels": int(differ.sum()),
        "of_which_ties": int((differ & (tied(raw) | tied(other))).sum()),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, of espeak-ng and of the packages that shape the files."""
    packages = ("ai-edge-litert", "keras", "numpy", "tensorflow-cpu")
    return {
        "python": platform.python_version(),
        "espeak-ng": espeak_version(),
        **{name: version(name) for name in packages},
    }


if __name__ == "__main__":
    main()
