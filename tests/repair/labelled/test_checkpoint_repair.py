"""DARE by checkpoints of a training: what they teach, and a network that stands more attacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")

from called_commands import call_here, completed, document_of, refused
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.gradient_descent import Tuning
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging import robustness
from edgeflare.repair.judging.candidate_model import CandidateModel
from edgeflare.repair.labelled.checkpoint_repair import candidate_to_judge
from edgeflare.repair.post_training import dare
from edgeflare.repair.post_training.dare import layer_before_last, taught_rows, tuned_towards
from fitted_networks import untold
from operator_chain import ChainStep, write_tflite

pytestmark = pytest.mark.whitebox

PIXELS = 16


def network(
    scale: float = 1.0, hidden: int = 8, noise: float = 0.0, *, quantized: bool = False
) -> bytes:
    """Scores of the second class are the sum of 8 pixels less that of the others.

    Args:
        scale: of the hidden layer.
        hidden: how many neurons it has, an even number.
        noise: by how much weights are off.
        quantized: whether it computes in int8.

    """
    rng = np.random.default_rng(0)
    signs = np.sign(np.arange(hidden) - hidden / 2 + 0.5).astype(np.float32)
    first = np.outer(signs, np.where(np.arange(PIXELS) < 8, 1, -1)).astype(np.float32)
    off = rng.normal(scale=noise, size=first.shape)
    first = (scale * first + off).astype(np.float32)
    last = np.outer([-1, 1], signs).astype(np.float32)
    zeros = np.zeros(hidden, np.float32)
    steps = [
        ChainStep("first", "FULLY_CONNECTED", ("image",), (1, hidden), first, zeros, "RELU"),
        ChainStep("scores", "FULLY_CONNECTED", ("first",), (1, 2), last, np.zeros(2, np.float32)),
        ChainStep("end", "SOFTMAX", ("scores",), (1, 2)),
    ]
    ranges = {"image": (0.0, 1.0), "first": (0.0, 16.0), "scores": (-64.0, 64.0), "end": (0.0, 1.0)}
    return write_tflite(steps, (1, 4, 4, 1), ranges if quantized else None)


def images(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images whose upper half is brighter in the second class by as little as an attack changes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    made = rng.integers(90, 150, (count, 4, 4, 1))
    made[labels == 1, :2] += 25
    made[labels == 0, 2:] += 25
    return made.astype(np.uint8), labels.astype(np.int64)


def write_pair(folder: Path, *, labelled: bool = True) -> Path:
    folder.mkdir()
    for name in ("original", "compressed"):
        (folder / f"{name}.tflite").write_bytes(network(noise=3.0))
    found, labels = images(400, 1)
    if labelled:
        np.savez(folder / "seeds.npz", images=found, labels=labels)
    else:
        np.savez(folder / "seeds.npz", images=found)
    (folder / "pair.toml").write_text(
        'original = "original.tflite"\ncompressed = "compressed.tflite"\nseeds = "seeds.npz"\n'
        '\n[preprocess]\npreset = "unit"\n'
    )
    for name, checkpoint in {
        "early": network(noise=2.0),
        "late": network(scale=2.0),
        "other": network(hidden=4),
        "quantized": network(quantized=True),
    }.items():
        (folder / f"{name}.tflite").write_bytes(checkpoint)
    return folder


def test_the_checkpoint_teaches_that_is_right_with_the_most_confidence() -> None:
    """By hand: the second row has no difference to be sure of, and the third is given wrongly."""
    rows = np.zeros((3, 4, 4, 1), np.float32)
    rows[0, :2], rows[2, :2] = 0.125, 0.125
    content, labels = network(), np.array([1, 1, 0])
    fitted = QuantizedNetwork(content, content, rows, rows)
    target = layer_before_last(fitted)
    checkpoints = [network(scale=0.5), network(scale=2), network(scale=-1)]
    found = taught_rows(fitted, labels, checkpoints, target)
    assert found.teachers.tolist() == [1, -1, 2]
    assert found.oracle.groups.tolist() == [1, 0]
    half = [[0] * 4 + [2] * 4, [1] * 4 + [0] * 4]
    assert found.oracle.wanted.reshape(2, 8).tolist() == half
    with pytest.raises(UserError, match="none of 1 gives the true label of any of 3 seeds"):
        taught_rows(fitted, labels, checkpoints[:1], target)


def test_a_layer_comes_nearer_to_what_checkpoints_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dare, "_TUNING", Tuning(steps=100, rate=0.3))
    found, labels = images(200, 2)
    rows, content = (found / 255).astype(np.float32), network(noise=3.0)
    fitted = QuantizedNetwork(content, content, rows, rows)
    target = layer_before_last(fitted)
    taught = taught_rows(fitted, labels, [network(scale=2.0)], target)
    rng = np.random.default_rng(0)
    made = tuned_towards(fitted, target, taught.oracle, labels, 95.0, rng, untold)
    (wanted,), *sides = (
        FakeQuantizedNetwork(Graph(each), (target.output,)).evaluate(rows)
        for each in (network(scale=2.0), content, made)
    )
    errors = [float(np.square(values - wanted).mean()) for (values,) in sides]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.slow
def test_a_repaired_model_stands_more_attacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dare, "_TUNING", Tuning(steps=150, rate=1.0))
    pair, out = write_pair(tmp_path / "pair"), tmp_path / "out"
    given = [pair / "early.tflite", pair / "late.tflite"]
    named = [part for file in given for part in ("--checkpoints", file)]
    said = completed("repair", pair, "--method", "dare", *named, "--out", out)
    document = document_of(out, "repair.json")
    made = document["checkpoints"]
    by_name = {row["name"]: row["judge"] for row in made["rows"]}
    assert list(by_name) == ["before", "dare", "dare-by-labels", "plain"]
    assert document["written"], document["why"]
    before, after = by_name["before"], by_name[document["chosen"]]
    assert after["kept"]["pgd"] > before["kept"]["pgd"]
    assert [one["file"] for one in made["checkpoints"]] == list(map(str, given))
    assert made["checkpoints"][1]["taught"] > made["checkpoints"][0]["taught"]
    assert made["devices"][0]["judge"] == after
    assert "late.tflite" in said.out
    completed("report", out, "--summary")
    assert str(pair) not in (out / "summary.md").read_text()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--checkpoints", "other.tflite"), "structure is not that of the original"),
        (("--checkpoints", "quantized.tflite"), "from operator 0 on (3 and 3 operators)"),
        (("--checkpoints", "gone.tflite"), "there is no model file"),
        (("--checkpoints", "late.tflite", "--resume"), "a repair by --checkpoints stores nothing"),
        (("--checkpoints", "late.tflite", "--robustness"), "is attacked anyway"),
        (("--checkpoints", "late.tflite", "--method", "auto"), "by --method dare"),
    ],
)
def test_checkpoints_that_cannot_teach_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], why: str
) -> None:
    pair = write_pair(tmp_path / "pair")
    monkeypatch.chdir(pair)
    assert why in refused("repair", pair, "--method", "dare", *options, "--out", tmp_path / "out")


def test_an_original_that_cannot_be_attacked_is_refused_in_a_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = write_pair(tmp_path / "pair")

    def ascent(model: CandidateModel, *_: object) -> None:
        raise UserError(f"{model.path} has no gradient")

    monkeypatch.setattr(robustness, "_ascent", ascent)
    asked = ("--method", "dare", "--checkpoints", pair / "late.tflite", "--dry-run")
    said = call_here("repair", pair, *asked, "--out", tmp_path / "out")
    assert (said.code, said.err) == (2, "edgeflare: candidate.tflite has no gradient\n")


def test_seeds_without_labels_are_refused(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair", labelled=False)
    asked = ("--method", "dare", "--checkpoints", pair / "late.tflite")
    assert "have no label" in refused("repair", pair, *asked, "--out", tmp_path / "out")


def right(accuracy: int, stood: int) -> dict[str, NDArray[np.bool_]]:
    return {
        "all": np.arange(100) < accuracy,
        "none": np.ones(50, bool),
        "pgd": np.arange(50) < stood,
    }


def test_plain_is_chosen_unless_another_one_surely_stands_more() -> None:
    plain = {"before": right(90, 10), "plain": right(90, 20)}
    assert candidate_to_judge({**plain, "dare": right(90, 24)}) == "plain"
    assert candidate_to_judge({**plain, "dare": right(90, 30)}) == "dare"
    assert candidate_to_judge({**plain, "dare": right(89, 30)}) == "plain"
    assert candidate_to_judge({"before": right(90, 10), "plain": right(80, 40)}) is None
