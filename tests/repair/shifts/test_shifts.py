"""Shifts: which models take them, and that every kernel does the same to a vector."""

from __future__ import annotations

import hashlib
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_in_other_runtime
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.shift_details import MOST_STEPS, NOTE
from edgeflare.repair.shifts.model_to_repair import (
    ModelToRepair,
    earlier_repair,
    read_model_to_repair,
    require_probabilities,
)
from edgeflare.repair.shifts.shifts import STEP, Shifts, append, standalone
from edgeflare.tasks.classification import ClassDecoder
from edgeflare_protos.kernel_sets import Kernels
from tampering import InterpreterProbe

CLASSES = 10
INT8 = Tensor("probabilities", (1, CLASSES), "int8", 1 / 256, -128)
UINT8 = Tensor("probabilities", (1, CLASSES), "uint8", 1 / 256, 0)
FLOAT = Tensor("probabilities", (1, CLASSES), "float32")
MODEL = Path(__file__).parents[3] / "examples" / "fashion_lenet4" / "compressed.tflite"


def shifts_from(rng: np.random.Generator) -> Shifts:
    lower = np.tril(rng.integers(-MOST_STEPS, MOST_STEPS + 1, (CLASSES, CLASSES)), -1)
    return Shifts((lower - lower.T).astype(np.int8))


def vectors_from(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Probability vectors: of every sharpness, and half of them near a boundary."""
    sharpness = rng.choice([0.05, 0.2, 1.0], count)
    vectors = np.stack([rng.dirichlet(np.full(CLASSES, alpha)) for alpha in sharpness])
    for k in range(0, count, 2):
        a, b = rng.choice(CLASSES, 2, replace=False)
        margin = rng.uniform(-0.1, 0.1)
        vectors[k] *= 0.02
        vectors[k, [a, b]] += 0.49 + margin / 2, 0.49 - margin / 2
    return vectors


def raw_from(vectors: NDArray[np.float64], output: Tensor) -> NDArray[np.generic]:
    if not output.scale:
        return vectors.astype(np.float32)
    limits = np.iinfo(output.dtype)
    steps = np.rint(vectors / output.scale) + output.zero_point
    return np.clip(steps, limits.min, limits.max).astype(output.dtype)


def target_of(output: Tensor) -> ModelToRepair:
    return ModelToRepair("model.tflite", "0" * 64, output, ())


@given(st.integers(0, 2**32 - 1))
def test_an_8_bit_answer_is_the_formula_rounded_to_the_nearest_step(seed: int) -> None:
    """In exact fractions: no float32 sum or product comes between."""
    rng = np.random.default_rng(seed)
    shifts = shifts_from(rng)
    raw = raw_from(vectors_from(rng, 2), INT8)
    given_back = shifts.apply(raw, INT8)
    for before, after in zip(raw.tolist(), given_back.tolist(), strict=True):
        units = [value + 128 for value in before]
        for a, unit in enumerate(units):
            moved = sum(
                Fraction(int(shifts.steps[a, b]), 64) * Fraction(other, 256)
                for b, other in enumerate(units)
            )
            exact = unit * (1 + moved)
            assert abs(exact - (after[a] + 128)) <= Fraction(1, 2) or after[a] == 127


@given(st.integers(0, 2**32 - 1))
def test_the_probabilities_keep_their_sum_and_none_is_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = vectors_from(rng, 20).astype(np.float32)
    shifted = shifts_from(rng).apply(vectors, FLOAT)
    assert np.allclose(shifted.sum(axis=1), vectors.sum(axis=1), atol=1e-5)
    assert (shifted.astype(np.float32) >= 0).all()


def test_a_boundary_moves_by_the_shift_and_only_where_two_classes_share() -> None:
    steps = np.zeros((CLASSES, CLASSES), np.int8)
    steps[3, 7], steps[7, 3] = 16, -16  # a quarter: the margin changes by an eighth
    shifts = Shifts(steps)
    near = np.zeros((2, CLASSES), np.float32)
    near[0, [3, 7]] = 0.44, 0.56
    near[1, [3, 7]] = 0.43, 0.57
    assert shifts.apply(near, FLOAT).argmax(axis=1).tolist() == [3, 7]
    far = np.zeros((1, CLASSES), np.float32)
    far[0, [2, 7]] = 0.4, 0.6
    assert np.allclose(shifts.apply(far, FLOAT), far, atol=1e-6)


def test_no_shift_leaves_every_answer_as_it_is() -> None:
    shifts = Shifts(np.zeros((CLASSES, CLASSES), np.int8))
    raw = raw_from(vectors_from(np.random.default_rng(1), 200), UINT8)
    assert np.array_equal(shifts.apply(raw, UINT8), raw)


@pytest.mark.parametrize(
    "steps",
    [
        np.ones((3, 3), np.int8),
        np.zeros((3, 4), np.int8),
        np.zeros((3, 3), np.int64),
        np.array([[0, MOST_STEPS + 1], [-MOST_STEPS - 1, 0]], np.int8),
    ],
)
def test_what_is_no_table_of_shifts_is_refused(steps: NDArray[np.int8]) -> None:
    with pytest.raises(ValueError, match="shifts are"):
        Shifts(steps)


KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")


@pytest.mark.parametrize("output", [INT8, UINT8, FLOAT], ids=lambda output: output.dtype)
@pytest.mark.parametrize("kernels", KERNELS)
def test_every_kernel_gives_the_same_labels_and_8_bit_ones_the_same_bits(
    kernels: Kernels, output: Tensor
) -> None:
    rng = np.random.default_rng(2)
    shifts = shifts_from(rng)
    raw = raw_from(vectors_from(rng, 400), output)
    alone = standalone(shifts, target_of(output))
    assert earlier_repair(alone) is not None
    tail = InterpreterProbe(alone, kernels)
    there = np.concatenate([tail.run([vector[np.newaxis]])[0] for vector in raw])
    here = shifts.apply(raw, output)
    assert np.array_equal(there.argmax(axis=1), here.argmax(axis=1))
    assert np.allclose(there, here, rtol=0, atol=0 if output.scale else 1e-6)
    assert (raw.argmax(axis=1) != here.argmax(axis=1)).mean() > 0.1  # it does something


class Repaired(NamedTuple):
    """The example's model, and the same with shifts behind it."""

    before: Path
    after: Path
    shifts: Shifts


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Repaired:
    shifts = shifts_from(np.random.default_rng(4))
    content = MODEL.read_bytes()
    after = tmp_path_factory.mktemp("repaired") / "repaired.tflite"
    after.write_bytes(append(content, shifts, read_model_to_repair(content)))
    return Repaired(MODEL, after, shifts)


def check(repaired: Repaired, before: TFLiteModel, after: TFLiteModel) -> None:
    """Compare two models on the example's seeds, and on mixtures of two of them."""
    assert after.signature == before.signature
    with np.load(MODEL.parent / "seeds.npz") as seeds:
        images = seeds["images"][:80].astype(np.int16)
    inputs = np.concatenate([images, (images + images[::-1]) // 2]) - 128
    inputs = inputs.astype(before.signature.input.dtype)
    was = before.submit(inputs).result().outputs.reshape(len(inputs), -1)
    now = after.submit(inputs).result().outputs.reshape(len(inputs), -1)
    assert not np.array_equal(now, was)
    assert np.array_equal(now, repaired.shifts.apply(was, before.signature.output))


@pytest.mark.slow
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_repaired_model_takes_and_gives_what_it_did_and_shifts_it(
    kernels: Kernels, repaired: Repaired
) -> None:
    with (
        closing(open_tflite(repaired.before, kernels)) as before,
        closing(open_tflite(repaired.after, kernels)) as after,
    ):
        check(repaired, before, after)


@pytest.mark.old_board
def test_so_does_an_old_runtime(repaired: Repaired, old_board_python: Path) -> None:
    there = f"builtin@{old_board_python}"
    with (
        open_in_other_runtime(repaired.before, there) as before,
        open_in_other_runtime(repaired.after, there) as after,
    ):
        check(repaired, before, after)


def test_a_file_keeps_its_signatures_and_says_what_it_was(repaired: Repaired) -> None:
    before, after = (Interpreter(str(path)) for path in (repaired.before, repaired.after))
    assert after.get_signature_list() == before.get_signature_list()
    with pytest.raises(UserError, match="has been repaired already"):
        read_model_to_repair(repaired.after.read_bytes())


def test_shifts_of_another_model_are_refused(repaired: Repaired) -> None:
    with pytest.raises(UserError, match="is not the model that this repairer is for"):
        append(MODEL.read_bytes(), repaired.shifts, target_of(INT8))


def test_the_grid_is_what_exactness_rests_on() -> None:
    assert STEP == 2.0**-6
    # S p stays below 1 and partial sums below 4, of vectors that sum to 1 but for their rounding.
    assert MOST_STEPS * STEP * (1 + CLASSES / 512) < 1


INPUT = Tensor("image", (1, 3), "float32")
FEW = 3


def network(*outputs: Tensor) -> bytes:
    """A model that gives its input as each of these outputs."""
    writer = Writer()
    image = writer.tensor(INPUT)
    ends = [writer.operator("QUANTIZE", [image], writer.tensor(output)) for output in outputs]
    writer.begin_and_end([image], ends)
    return writer.content()


@pytest.mark.parametrize(
    "output",
    [
        Tensor("scores", (1, FEW), "int8", 1 / 256, -128),
        Tensor("scores", (1, FEW), "uint8", 1 / 256, 0),
        Tensor("scores", (1, 1, 1, FEW), "float32"),
    ],
    ids=lambda output: output.dtype,
)
def test_a_model_that_can_be_repaired(output: Tensor) -> None:
    content = network(output)
    target = read_model_to_repair(content, "a.tflite")
    assert target.output == output
    assert target.inputs == (INPUT,)
    assert target.classes == FEW
    assert target.sha256 == hashlib.sha256(content).hexdigest()
    assert earlier_repair(content) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            network(*(Tensor(name, (1, FEW), "float32") for name in ("scores", "boxes"))),
            r"a\.tflite has 2 outputs, but only models with one",
        ),
        (
            network(Tensor("scores", (1, FEW), "int32")),
            "output 'scores' is int32, but a repairer takes int8",
        ),
        (b"no model", r"a\.tflite"),
    ],
    ids=["two outputs", "integers", "no model"],
)
def test_a_model_that_cannot_be_repaired_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_model_to_repair(content, "a.tflite")


@pytest.mark.parametrize(
    "output",
    [
        Tensor("scores", (1, FEW), "float32"),
        Tensor("scores", (1, FEW), "int8", 0.1, 3),
    ],
    ids=lambda output: output.dtype,
)
def test_logits_are_refused_whatever_their_type_and_probabilities_are_not(output: Tensor) -> None:
    require_probabilities(ClassDecoder((output,), 0, "probabilities"), "a.tflite")
    with pytest.raises(UserError, match=r"convert it with a softmax as its last layer$"):
        require_probabilities(ClassDecoder((output,), 0, "logits"), "a.tflite")


def test_a_model_that_was_repaired_already_is_refused() -> None:
    content = network(Tensor("scores", (1, FEW), "float32"))
    target = read_model_to_repair(content, "a.tflite")
    again = append(content, Shifts(np.zeros((FEW, FEW), np.int8)), target, "a.tflite")
    with pytest.raises(UserError, match=r"repair the model that it was made from, a\.tflite$"):
        read_model_to_repair(again, "b.tflite")
    before = earlier_repair(again)
    assert before is not None
    assert (before.name, before.sha256) == ("a.tflite", target.sha256)


@pytest.mark.parametrize("note", [b"no JSON", b"[1]", b"{}", b'{"name": 1, "sha256": []}'])
def test_a_note_that_no_repair_wrote_says_nothing(note: bytes) -> None:
    writer = Writer(network(Tensor("scores", (1, FEW), "float32")))
    writer.note(NOTE, note)
    assert earlier_repair(writer.content()) is None
