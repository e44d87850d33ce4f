"""Pairs of real models with a state, with several inputs, and with tasks that read inputs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.campaign.opened_pair import RefusedByDevice, open_pair
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.models.invocation import Invocation
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface
from edgeflare.run.plan import Plan
from edgeflare.tasks.segmentation.mask_answer import MaskAnswer
from edgeflare.tasks.threshold_decoder import ScoreAnswer
from graph_writer import GraphWriter, write_state_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
PLAN = Plan("boundary", Goal(), ("emulated-builtin",), ensemble=("xnnpack",))
STATE = Invocation(state={"state": "next"}, frames=5)
FRAMES = PairInput("x", "array", {"lowest": -1.0, "highest": 1.0})


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    original = write_state_model(tmp_path / "original.tflite", "FLOAT32")
    compressed = write_state_model(tmp_path / "compressed.tflite", "INT8")
    clips = np.random.default_rng(0).uniform(-1, 1, (6, 5, 1, 3)).astype(np.float32)
    np.savez(tmp_path / "seeds.npz", x=clips, labels=clips.sum(axis=1).argmax(axis=2).ravel())
    interface = PairInterface((FRAMES,), task_settings={"output": "y"}, invocation=STATE)
    return Pair("state", str(original), compressed, tmp_path / "seeds.npz", interface)


def test_a_clip_is_handed_to_all_arms_frame_by_frame(pair: Pair) -> None:
    with ExitStack() as stack:
        opened = open_pair(pair, PLAN, [find_profile("emulated-builtin")], stack)
        clips = opened.seeds.inputs
        evaluated = list(opened.evaluate(list(clips), range(6), opened.panel.arms))
    sums = clips.sum(axis=1).reshape(6, 3)
    for one, expected in zip(evaluated, sums, strict=True):
        answers = one.outcome.answers
        np.testing.assert_allclose(
            answers[Arm.ORIGINAL].probabilities, 1 / (1 + np.exp(-expected)), rtol=1e-5
        )
        for arm in (Arm.TWIN, Arm.DEVICE):
            np.testing.assert_allclose(
                answers[arm].probabilities, answers[Arm.ORIGINAL].probabilities, atol=0.1
            )


def test_a_reconstruction_is_compared_with_what_the_model_was_given(tmp_path: Path) -> None:
    """The model is no autoencoder; that its output is no copy of its input is all that is used."""
    graph = GraphWriter()
    given, made = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("x", "y"))
    graph.operator("LOGISTIC", [given], [made], None, 1)
    path = graph.save(tmp_path / "logistic.tflite", [given], [made])
    x = np.random.default_rng(0).uniform(-1, 1, (6, 3)).astype(np.float32)
    np.savez(tmp_path / "seeds.npz", x=x)
    told = {"threshold": 0.5, "score": "reconstruction"}
    interface = PairInterface((FRAMES,), task="threshold", task_settings=told)
    pair = Pair("logistic", str(path), path, tmp_path / "seeds.npz", interface)
    with ExitStack() as stack:
        opened = open_pair(pair, PLAN, [find_profile("emulated-builtin")], stack)
        evaluated = list(opened.evaluate(list(x), range(6), opened.panel.arms))
    errors = ((1 / (1 + np.exp(-x)) - x) ** 2).mean(axis=1)
    decisions = [one.outcome[Arm.DEVICE].decision for one in evaluated]
    assert decisions == (errors >= 0.5).astype(int).tolist()
    assert 0 < decisions.count(1) < 6


@pytest.mark.parametrize("against", ["features", "dequantized"])
def test_a_reconstruction_by_a_quantized_model_is_compared_as_apps_do_unless_told(
    against: str, tmp_path: Path
) -> None:
    graph = GraphWriter()
    given = graph.tensor("x", (1, 3), "INT8", (0.2, 7))
    made = graph.tensor("y", (1, 3), "INT8", (1 / 256, -128))
    graph.operator("LOGISTIC", [given], [made], None, 2)
    path = graph.save(tmp_path / "logistic.tflite", [given], [made])
    x = np.random.default_rng(0).uniform(-1, 1, (6, 3)).astype(np.float32)
    np.savez(tmp_path / "seeds.npz", x=x)
    told = {"threshold": 0.5, "score": "reconstruction", "against": against}
    interface = PairInterface((FRAMES,), task="threshold", task_settings=told)
    pair = Pair("logistic", str(path), path, tmp_path / "seeds.npz", interface)
    compared = x if against == "features" else np.round(x / np.float32(0.2)) * 0.2
    with ExitStack() as stack:
        opened = open_pair(pair, PLAN, [find_profile("emulated-builtin")], stack)
        evaluated = list(opened.evaluate(list(x), range(6), opened.panel.arms))
    for row, one in enumerate(evaluated):
        outputs = np.frombuffer(one.raw[Arm.DEVICE], np.int8)[-3:]
        errors = (outputs + 128.0) / 256 - compared[row]
        answer = one.outcome[Arm.DEVICE]
        assert isinstance(answer, ScoreAnswer)
        assert answer.score == pytest.approx((errors**2).mean(), rel=1e-6)


def test_masks_and_arrays_with_channels_first_are_those_with_channels_last(tmp_path: Path) -> None:
    """Both models give the logistic function of each of their values, in their own layout."""
    paths = []
    for name, shape in (("original", (1, 3, 4, 5)), ("compressed", (1, 4, 5, 3))):
        graph = GraphWriter()
        given, made = (graph.tensor(tensor, shape, "FLOAT32") for tensor in ("x", "y"))
        graph.operator("LOGISTIC", [given], [made], None, 1)
        paths.append(graph.save(tmp_path / f"{name}.tflite", [given], [made]))
    x = np.random.default_rng(0).uniform(-1, 1, (4, 4, 5, 3)).astype(np.float32)
    np.savez(tmp_path / "seeds.npz", x=x)
    interface = PairInterface((FRAMES,), task="segmentation")
    pair = Pair("planes", str(paths[0]), paths[1], tmp_path / "seeds.npz", interface)
    with ExitStack() as stack:
        opened = open_pair(pair, PLAN, [find_profile("emulated-builtin")], stack)
        evaluated = list(opened.evaluate(list(x), range(4), opened.panel.arms))
    for one, scores in zip(evaluated, x, strict=True):
        for arm in (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE):
            answer = one.outcome.answers[arm]
            assert isinstance(answer, MaskAnswer)
            np.testing.assert_array_equal(answer.mask, scores.argmax(axis=2))


@pytest.mark.slow
def test_a_device_that_refuses_the_folded_model_names_the_users_file() -> None:
    pair = load_pair(EXAMPLE, Settings(fold_shapes=True))
    profile = replace(find_profile("emulated-micro"), arena_bytes=64)
    with pytest.raises(RefusedByDevice) as refused, ExitStack() as stack:
        open_pair(pair, PLAN, [profile], stack)
    said = str(refused.value)
    assert said.startswith(f"{pair.compressed} with its shapes folded: ")
    assert "-folded.tflite" not in said
