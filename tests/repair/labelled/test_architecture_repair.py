"""ArchRepair beside plain fine-tuning, on a network whose weights are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")
pytest.importorskip("litert_quantizer", reason="needs the extra repair")

from called_commands import completed, document_of, refused
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer, notes
from edgeflare.repair.architecture import block_search, candidate_operators
from edgeflare.repair.architecture.candidate_operators import NONE
from edgeflare.repair.architecture.network_blocks import network_blocks
from edgeflare.repair.architecture.rewritten_block import ORIGINAL
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import compressed_as, weights_only
from edgeflare.repair.labelled.labelled_repair import surely_right
from operator_chain import ChainStep, write_tflite

pytestmark = pytest.mark.whitebox

SHAPE = (1, 6, 6, 1)


def network(last: str = "SOFTMAX") -> bytes:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> NDArray[np.float32]:
        return rng.normal(scale=0.5, size=shape).astype(np.float32)

    steps = [
        ChainStep("stem", "CONV_2D", ("image",), (1, 6, 6, 4), drawn(4, 3, 3, 1), drawn(4), "RELU"),
        ChainStep("first", "CONV_2D", ("stem",), (1, 6, 6, 4), drawn(4, 3, 3, 4), drawn(4), "RELU"),
        ChainStep("second", "CONV_2D", ("first",), (1, 6, 6, 4), drawn(4, 3, 3, 4), drawn(4)),
        ChainStep("sum", "ADD", ("second", "stem"), (1, 6, 6, 4), activation="RELU"),
        ChainStep("pool", "MEAN", ("sum",), (1, 4)),
        ChainStep("scores", "FULLY_CONNECTED", ("pool",), (1, 2), drawn(2, 4), drawn(2)),
        ChainStep("end", last, ("scores",), (1, 2)),
    ]
    return write_tflite(steps, SHAPE)


def stripes(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Noisy images whose bright rows are one class, and bright columns the other."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    images = rng.integers(0, 120, (count, *SHAPE[1:]))
    for image, label in zip(images, labels, strict=True):
        at = rng.integers(0, 6)
        image[(at, slice(None)) if label else (slice(None), at)] += 130
    return images.astype(np.uint8), labels.astype(np.int64)


def write_pair(folder: Path, count: int, *, labelled: bool = True, last: str = "SOFTMAX") -> Path:
    folder.mkdir()
    content = network(last)
    images, labels = stripes(count, 1)
    rows = (images / 255).astype(np.float32)
    (folder / "original.tflite").write_bytes(content)
    compressed = weights_only(QuantizedNetwork(content, content, rows, rows)).content
    (folder / "compressed.tflite").write_bytes(compressed)
    if labelled:
        np.savez(folder / "seeds.npz", images=images, labels=labels)
    else:
        np.savez(folder / "seeds.npz", images=images)
    (folder / "pair.toml").write_text(
        'original = "original.tflite"\ncompressed = "compressed.tflite"\nseeds = "seeds.npz"\n'
        '\n[preprocess]\npreset = "unit"\n'
    )
    return folder


@pytest.mark.slow
def test_the_original_is_trained_and_compressed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"conv": candidate_operators._CANDIDATES["conv"]}  # less to compile
    monkeypatch.setattr(candidate_operators, "_CANDIDATES", one)
    pair, out, test = write_pair(tmp_path / "pair", 700), tmp_path / "out", tmp_path / "test.npz"
    images, labels = stripes(600, 2)
    np.savez(test, images=images, labels=labels)
    said = completed(
        *("repair", pair, "--method", "archrepair", "--steps", 40, "--test", test, "--out", out),
        *("--max-size", "none", "--max-latency", "none"),
    )
    document = document_of(out, "repair.json")
    repair = document["architecture"]
    rows = {row["name"]: row for row in repair["rows"]}
    assert rows.keys() == {"before", "plain", "archrepair-block-1"}
    assert document["written"], document["why"]
    right = {name: row["fresh"]["compressed"]["right"] for name, row in rows.items()}
    assert right[document["chosen"]] > right["before"] + 100
    assert f"{right[document['chosen']] / 600:.2%}" in said.out
    assert rows["archrepair-block-1"]["connections"]
    assert repair["blocks"][0]["suspicious"] == 8  # all that there are
    (on_device,) = repair["devices"]
    assert (
        abs(on_device["judge"]["right"] - rows[document["chosen"]]["judge"]["compressed"]["right"])
        <= 2
    )
    made = Graph((out / "original.tflite").read_bytes())
    assert not any(tensor.scales for tensor in made.tensors)
    completed("repair", out, "--method", "ranges", "--dry-run", "--out", tmp_path / "again")


def test_the_search_keeps_something_that_computes() -> None:
    block = network_blocks(Graph(content := network()))[0]
    supernet = block_search._Supernet(content, block, np.random.default_rng(0))
    low = {edge: np.zeros(len(names)) for edge, names in supernet.names.items()}
    for edge, names in supernet.names.items():
        low[edge][names.index(NONE)] = 1.0
    low[0, 2][supernet.names[0, 2].index(ORIGINAL)] = 2.0  # the feature as it is
    low[1, 2][supernet.names[1, 2].index("sep_conv")] = 0.5
    low[0, 1][supernet.names[0, 1].index("conv")] = 0.5
    assert supernet.kept(low) == {(0, 1): "conv", (0, 2): ORIGINAL, (1, 2): "sep_conv"}


def test_plain_is_chosen_unless_another_one_is_surely_better() -> None:
    plain, better = np.arange(100) < 50, np.arange(100) < 52
    assert surely_right({"plain": plain, "archrepair-block-1": better}) == "plain"
    better = np.arange(100) < 60
    assert surely_right({"plain": plain, "archrepair-block-1": better}) == "archrepair-block-1"
    assert surely_right({"archrepair-block-1": better}) == "archrepair-block-1"
    assert surely_right({}) is None


def test_a_network_is_compressed_as_another_one_was() -> None:
    content, rows = network(), stripes(20, 3)[0].astype(np.float32) / 255
    ranges = {"image": (0.0, 1.0), "pool": (0.0, 1.0)}
    writer = Writer(write_tflite([ChainStep("pool", "MEAN", ("image",), (1, 1))], SHAPE, ranges))
    writer.note("TFLITE_METADATA", b"names")
    fitted = QuantizedNetwork(content, content, rows, rows)
    anew = compressed_as(writer.content(), fitted).content
    assert notes(anew)["TFLITE_METADATA"] == b"names"
    made = Graph(anew)
    assert {made.tensors[at].dtype for at in (*made.inputs, *made.outputs)} == {"int8"}
    assert all(made.tensors[layer.outputs[0]].dtype == "int8" for layer in made.layers)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--method", "ranges", "--steps", "20"), "--steps and --suspects are settings of"),
        (("--method", "archrepair", "--in-place"), "does not go with --in-place"),
        (("--method", "archrepair", "--resume"), "does not go with --resume"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    (tmp_path / "pair.toml").write_text("")
    assert why in refused("repair", tmp_path, *options, "--out", tmp_path / "out")


def test_what_cannot_be_trained_is_refused(tmp_path: Path) -> None:
    options = ("--method", "archrepair", "--dry-run", "--out", tmp_path / "out")
    pair = write_pair(tmp_path / "pair", 427)
    said = completed("repair", pair, *options)
    assert "257 seeds to fit with" in said.out
    assert "--steps 9 ends before operators are compared" in refused(
        "repair", pair, *options, "--steps", 9
    )
    line = refused("repair", pair, *options, "--limit", 426)
    assert "426 seeds, and --method archrepair needs at least 427" in line
    unlabelled = write_pair(tmp_path / "unlabelled", 430, labelled=False)
    assert "430 of 430 seeds have no label" in refused("repair", unlabelled, *options)
    odd = write_pair(tmp_path / "odd", 430, last="L2_NORMALIZATION")
    line = refused("repair", odd, *options)
    assert "operator 6, L2_NORMALIZATION, has no translation to take a gradient of" in line
    (odd / "compressed.tflite").write_bytes(network())
    line = refused("repair", odd, *options)
    assert "compressed neither in 8 bits whole nor in its weights alone" in line
