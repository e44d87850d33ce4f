"""Pairs of real models, opened: with a state, several inputs, tasks that read inputs, folding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import (
    OpenedPair,
    RefusedByDevice,
    host_arm,
    open_pair,
    with_folding_proven,
)
from edgeflare.campaign.pipeline import DEPTH, EvaluatedBatch
from edgeflare.campaign.unreset_twin import answers_without_reset
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.seeds import SeedChoice
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Invocation
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_interface import PairInput, PairInterface
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.models.tflite import open_tflite
from edgeflare.run.plan import Plan
from edgeflare.tasks.segmentation.mask_answer import MaskAnswer
from edgeflare.tasks.threshold import ScoreAnswer
from edgeflare_protos.kernel_sets import TFLiteKernels
from graph_writer import GraphWriter, write_state_model
from tampering import COMPRESSED, constant_of, with_constant

FRAMES = PairInput("x", "array", {"lowest": -1.0, "highest": 1.0})
BOARD = find_profile("emulated-builtin")


def opened(stack: ExitStack, pair: Pair, kernels: TFLiteKernels = "xnnpack") -> OpenedPair:
    plan = Plan("boundary", Goal(), ("emulated-builtin",), ensemble=(kernels,))
    return open_pair(pair, plan, [BOARD], stack)


def evaluated(pair: Pair) -> list[EvaluatedQuery]:
    """What all arms answer about the seeds of a pair."""
    with ExitStack() as stack:
        one = opened(stack, pair)
        seeds = list(one.seeds.inputs)
        return list(one.evaluate(seeds, range(len(seeds)), one.panel.arms))


def pair_of(
    models: Sequence[Path], x: NDArray[np.float32], interface: PairInterface, **more: Any
) -> Pair:
    """A pair of an original and a compressed model, or of one as both, with its seeds beside it."""
    seeds = models[0].with_name("seeds.npz")
    np.savez(seeds, x=x, **more)
    return Pair("pair", str(models[0]), models[-1], seeds, interface)


def reconstruction(against: str | None = None, **told: Any) -> PairInterface:
    settings = {"threshold": 0.5, "score": "reconstruction", **told}
    if against is not None:
        settings["against"] = against
    return PairInterface((FRAMES,), task="threshold", task_settings=settings)


def inputs(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def logistic(path: Path, shape: tuple[int, ...], dtype: str = "FLOAT32") -> Path:
    """Write a model of the logistic function of each of its values."""
    graph = GraphWriter()
    scales = ((0.2, 7), (1 / 256, -128)) if dtype == "INT8" else (None, None)
    given, made = (
        graph.tensor(name, shape, dtype, scale)
        for name, scale in zip(("x", "y"), scales, strict=True)
    )
    graph.operator("LOGISTIC", [given], [made], None, 2 if dtype == "INT8" else 1)
    return graph.save(path, [given], [made])


def test_a_clip_is_handed_to_all_arms_frame_by_frame(tmp_path: Path) -> None:
    models = [
        write_state_model(tmp_path / f"{dtype}.tflite", dtype) for dtype in ("FLOAT32", "INT8")
    ]
    clips = inputs(6, 5, 1, 3)
    sums = clips.sum(axis=1).reshape(6, 3)
    state = Invocation(state={"state": "next"}, frames=5)
    interface = PairInterface((FRAMES,), task_settings={"output": "y"}, invocation=state)
    pair = pair_of(models, clips, interface, labels=sums.argmax(axis=1))
    for one, expected in zip(evaluated(pair), sums, strict=True):
        shares = {arm: answer.probabilities for arm, answer in one.outcome.answers.items()}
        np.testing.assert_allclose(shares[Arm.ORIGINAL], 1 / (1 + np.exp(-expected)), rtol=1e-5)
        for arm in (Arm.TWIN, Arm.DEVICE):
            np.testing.assert_allclose(shares[arm], shares[Arm.ORIGINAL], atol=0.1)


def test_labels_beyond_the_classes_are_refused(tmp_path: Path) -> None:
    models = [logistic(tmp_path / "logistic.tflite", (1, 3))]
    interface = PairInterface((FRAMES,))
    for labels in ([0, 1, 2, -1], [1, 2, 3, -1]):  # numbered from 0, and from 1
        pair = pair_of(models, inputs(4, 3), interface, labels=np.array(labels))
        with ExitStack() as stack:
            if max(labels) < 3:
                assert opened(stack, pair).truths.known().tolist() == [True, True, True, False]
                continue
            with pytest.raises(UserError, match=r"seed 2 is 3, and the model has 3 classes, 0 to"):
                opened(stack, pair)


def _many(answered: Sequence[EvaluatedQuery]) -> bool:
    return len(answered) >= 6


def test_of_slow_models_few_inputs_are_under_way_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [logistic(tmp_path / "logistic.tflite", (1, 3))]
    pair = pair_of(models, inputs(90, 3), reconstruction())
    monkeypatch.setattr(EvaluatedBatch, "mean_seconds", property(lambda _batch: 1.0))
    with ExitStack() as stack:
        one, answered = opened(stack, pair), list[EvaluatedQuery]()
        seeds = list(one.seeds.inputs)
        arms, enough = one.panel.arms, partial(_many, answered)
        answered.extend(one.evaluate(seeds, range(len(seeds)), arms, enough))
    assert 6 <= len(answered) <= 6 + DEPTH


def test_a_reconstruction_is_compared_with_what_the_model_was_given(tmp_path: Path) -> None:
    """The model is no autoencoder; that its output is no copy of its input is all that is used."""
    x = inputs(6, 3)
    pair = pair_of([logistic(tmp_path / "logistic.tflite", (1, 3))], x, reconstruction())
    errors = ((1 / (1 + np.exp(-x)) - x) ** 2).mean(axis=1)
    decisions = [one.outcome[Arm.DEVICE].decision for one in evaluated(pair)]
    assert decisions == (errors >= 0.5).astype(int).tolist()
    assert 0 < decisions.count(1) < 6


@pytest.mark.parametrize("against", ["features", "dequantized"])
def test_a_reconstruction_by_a_quantized_model_is_compared_as_apps_do_unless_told(
    against: str, tmp_path: Path
) -> None:
    x = inputs(6, 3)
    model = logistic(tmp_path / "logistic.tflite", (1, 3), "INT8")
    compared = x if against == "features" else np.round(x / np.float32(0.2)) * 0.2
    for row, one in enumerate(evaluated(pair_of([model], x, reconstruction(against)))):
        outputs = np.frombuffer(one.raw[Arm.DEVICE], np.int8)[-3:]
        errors = (outputs + 128.0) / 256 - compared[row]
        answer = one.outcome[Arm.DEVICE]
        assert isinstance(answer, ScoreAnswer)
        assert answer.score == pytest.approx((errors**2).mean(), rel=1e-6)


def test_masks_and_arrays_with_channels_first_are_those_with_channels_last(tmp_path: Path) -> None:
    models = [
        logistic(tmp_path / "original.tflite", (1, 3, 4, 5)),
        logistic(tmp_path / "compressed.tflite", (1, 4, 5, 3)),
    ]
    x = inputs(4, 4, 5, 3)
    pair = pair_of(models, x, PairInterface((FRAMES,), task="segmentation"))
    for one, scores in zip(evaluated(pair), x, strict=True):
        for answer in one.outcome.answers.values():
            assert isinstance(answer, MaskAnswer)
            np.testing.assert_array_equal(answer.mask, scores.argmax(axis=2))


STEP, THRESHOLD, SEEDS = 0.5, 0.02, 12


def write_fading(path: Path) -> Path:
    """Write y = x + 0.3 y before, of an int8 x."""
    graph = GraphWriter()
    given = graph.tensor("x", (1, 1, 3), "INT8", (STEP, 0))
    x, y = (graph.tensor(name, (1, 1, 3), "FLOAT32") for name in ("real", "y"))
    graph.operator("DEQUANTIZE", [given], [x], schema.DequantizeOptionsT(), 2)
    eye, zeros = np.eye(3, dtype=np.float32), np.zeros(3, np.float32)
    w = graph.tensor("w", (3, 3), "FLOAT32", data=eye)
    again = graph.tensor("again", (3, 3), "FLOAT32", data=eye * np.float32(0.3))
    bias = graph.tensor("b", (3,), "FLOAT32", data=zeros)
    state = graph.tensor("h", (1, 3), "FLOAT32")
    graph.graph.tensors[state].isVariable = True
    options = schema.SequenceRNNOptionsT()
    graph.operator("UNIDIRECTIONAL_SEQUENCE_RNN", [x, w, again, bias, state], [y], options)
    return graph.save(path, [given], [y])


@pytest.mark.parametrize("against", ["features", "dequantized"])
def test_an_app_that_resets_nothing_compares_a_reconstruction_with_what_other_arms_do(
    against: str, tmp_path: Path
) -> None:
    path = write_fading(tmp_path / "fading.tflite")
    x = np.random.default_rng(3).uniform(-1, 1, (SEEDS, 1, 1, 3)).astype(np.float32)
    pair = pair_of([path], x, reconstruction(against, threshold=THRESHOLD, spread=0.1))
    model = Interpreter(str(path))
    model.allocate_tensors()
    (taken,), (made,) = model.get_input_details(), model.get_output_details()
    decided: dict[str, list[bool]] = {"with": [], "without": []}
    for name, decisions in decided.items():
        model.reset_all_variables()
        for one in x:
            if name == "with":
                model.reset_all_variables()
            raw = np.round(one / STEP).astype(np.int8)
            model.set_tensor(taken["index"], raw)
            model.invoke()
            subtracted = one if against == "features" else raw * STEP
            error = ((model.get_tensor(made["index"]) - subtracted) ** 2).mean()
            decisions.append(bool(error >= THRESHOLD))
    with ExitStack() as stack:
        found = answers_without_reset(opened(stack, pair, "builtin"))
    assert found is not None
    assert found.seeds == SEEDS
    assert found.changed == sum(map(bool.__ne__, *decided.values()))
    # Against the dequantized input an inference after a reset gives no error at all.
    assert any(decided["with"]) == (against == "features")
    assert 0 < found.changed < SEEDS


@pytest.mark.slow
def test_a_device_that_refuses_the_folded_model_names_the_users_file() -> None:
    pair = load_pair(COMPRESSED.parent, Settings(fold_shapes=True))
    profile = replace(find_profile("emulated-micro"), arena_bytes=64)
    plan = Plan("boundary", Goal(), ("emulated-micro",), ensemble=("xnnpack",))
    with pytest.raises(RefusedByDevice) as refused, ExitStack() as stack:
        open_pair(pair, plan, [profile], stack)
    said = str(refused.value)
    assert said.startswith(f"{pair.compressed} with its shapes folded: ")
    assert "-folded.tflite" not in said


def proven(pair: Pair) -> Pair:
    with closing(open_tflite(pair.executed, "builtin")) as model:
        name = str(pair.compressed)
        taken = ModelInputs(pair.interface, model.signature.inputs, name)
        seeds = taken.load(pair.seeds, SeedChoice(first=5))
        arm = host_arm(pair, name, model, taken, seeds)
        return with_folding_proven(pair, arm, {"builtin": model}, seeds)


@pytest.fixture
def folded_pair() -> Iterator[Pair]:
    with with_shapes_folded(load_pair(COMPRESSED.parent, Settings(fold_shapes=True))) as folded:
        yield folded


@pytest.mark.slow
def test_a_folded_file_is_taken_where_it_gives_the_users_own_outputs(
    folded_pair: Pair, refusal: Callable[..., str]
) -> None:
    folded = proven(folded_pair).folded
    assert folded is not None
    assert (folded.equal_under, folded.inputs) == (("builtin",), 5)
    plain = load_pair(COMPRESSED.parent)
    assert proven(plain) is plain
    content = folded_pair.executed.read_bytes()
    weights = constant_of(content, 0)
    folded_pair.executed.write_bytes(with_constant(content, weights, np.zeros_like))
    said = refusal(proven, folded_pair)
    assert "gives other outputs under the builtin kernels" in said
    assert "leave --fold-shapes out" in said
