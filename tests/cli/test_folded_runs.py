"""A model that asks for shapes, folded on request: on the GPU, in what follows, and refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflare.models.tflite_graph import Graph
from tampering import COMPRESSED

Call = Callable[..., Any]

EXAMPLE = COMPRESSED.parent
FOLDED = "shapes folded: SHAPE, STRIDED_SLICE, PACK as constants"
BUDGET = (
    *("--first", "4", "--max-queries", "100", "--shrink", "0", "--within", "none"),
    *("--fail-on", "none"),
)


@pytest.fixture
def folding(tmp_path: Path) -> Path:
    """A copy of the pair whose pair.toml says that shapes are folded."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "pair")
    said = (folder / "pair.toml").read_text()
    (folder / "pair.toml").write_text(f"fold_shapes = true\n{said}")
    return folder


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_it_runs_on_the_gpu_whole_and_is_explained_and_replayed_alike(
    call: Call, tmp_path: Path
) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    said = call(
        *("search", EXAMPLE, "--device", "emulated-gpu", "--fold-shapes"),
        *(*BUDGET, "--ensemble", "xnnpack", "--out", run),
    )
    assert said.code == 0, said.err
    assert FOLDED in " ".join(said.out.split())
    document = json.loads((run / "run.json").read_bytes())
    pair, (device,) = document["pair"], document["devices"]
    assert device["provenance"]["delegated_nodes"] == device["provenance"]["total_nodes"]
    assert pair["folded_shapes"]["equal_under"] == ["xnnpack"]
    assert pair["folded_shapes"]["inputs"] == 4
    assert pair["sha256"]["compressed"] != pair["folded_shapes"]["sha256"]
    assert Path(pair["compressed"]) == COMPRESSED
    assert document["findings"]
    assert call("explain", run, "--model-explorer").code == 0
    explained = json.loads((run / "explain.json").read_bytes())["findings"]
    seed_id, entry = next(iter(explained.items()))
    layers = entry["twin_and_original"]["layers"]
    assert [one["name"] for one in layers].count("RESHAPE") == 1
    # What is laid over the user's file is numbered as in that.
    shown = run / f"explain/{int(seed_id):06d}.model-explorer/4-residual.json"
    (residuals,) = json.loads(shown.read_bytes()).values()
    names = [one.name for one in Graph(COMPRESSED.read_bytes()).operators]
    assert [names[int(key)] for key in residuals["results"]] == [
        one["name"] for one in layers if one["residual"] is not None
    ]
    assert call("replay", run, "--out", again).code == 1
    replayed = json.loads((again / "run.json").read_bytes())
    assert replayed["pair"]["folded_shapes"]["sha256"] == pair["folded_shapes"]["sha256"]
    assert len(replayed["findings"]) == len(document["findings"])


@pytest.mark.slow
def test_the_pair_says_it_and_what_is_exported_is_what_ran(
    folding: Path, call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert call("search", folding, *BUDGET, "--out", run).code == 0
    document = json.loads((run / "run.json").read_bytes())
    found = document["findings"][0]["seed_id"]
    said = call("export", run, str(found), "--out", tmp_path / "finding.zip")
    assert said.code == 0, said.err
    shutil.unpack_archive(tmp_path / "finding.zip", tmp_path / "unpacked")
    told = json.loads((tmp_path / "unpacked" / "finding.json").read_bytes())
    assert told["sha256"]["compressed"] == document["pair"]["folded_shapes"]["sha256"]
    said = call("search", folding, *BUDGET, "--no-fold-shapes", "--resume", "--out", run)
    assert said.code == 2
    assert "was begun with --fold-shapes, not without" in said.err
    said = call("repair", run, "--out", tmp_path / "repaired")
    assert said.code == 2
    assert "runs with its shapes folded" in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("search", EXAMPLE.parent / "spoken_words", "--fold-shapes"),
            "compressed.tflite computes nothing from the shapes of its tensors",
        ),
        (
            ("search", EXAMPLE, "--fold-shapes", "--compressed", "absent.tflite"),
            "there is no model file absent.tflite",
        ),
    ],
    ids=["nothing to fold", "no model"],
)
def test_what_cannot_be_folded_is_one_line(
    arguments: tuple[Any, ...], said: str, call: Call, tmp_path: Path
) -> None:
    done = call(*arguments, "--out", tmp_path / "run")
    assert done.code == 2
    assert said in done.err
    assert done.err.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_the_key_of_a_pair_is_true_or_false(folding: Path, call: Call, tmp_path: Path) -> None:
    text = (folding / "pair.toml").read_text().replace("= true", '= "yes"')
    (folding / "pair.toml").write_text(text)
    done = call("search", folding, "--out", tmp_path / "run")
    assert done.code == 2
    assert "fold_shapes is 'yes'; expected true or false" in done.err
