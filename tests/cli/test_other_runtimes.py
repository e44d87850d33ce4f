"""Runs on other runtimes than the host's: the GPU accelerator, TFLite Micro, an old board."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from called_commands import EXAMPLE, EXAMPLES, call_here, completed, document_of, refused
from edgeflare.models.tflite_graph import Graph
from laboratory import untimed
from networks import write_pair
from reproductions import reproduce, unpacked
from tampering import COMPRESSED

GPU_BUDGET = (
    *("--find", "kernel", "--device", "emulated-gpu", "--first", "3", "--max-queries", "100"),
    *("--shrink", "0", "--within", "none", "--ensemble", "xnnpack,dequantized"),
)

SHORTCUT = 6
"""The operator of the network that is a 1×1 convolution with a stride, where it is first wrong."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    pair = write_pair(tmp_path / "pair", "resnet")
    said = completed("search", pair, *GPU_BUDGET, "--fail-on", "none", "--out", folder)
    assert "nodes accelerated on SwiftShader" in " ".join(said.out.split())
    return folder


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_run_on_the_gpu_is_explained_and_replayed_and_says_on_what_it_computed(
    run: Path, tmp_path: Path
) -> None:
    document = document_of(run)
    (device,) = document["devices"]
    what = device["provenance"]
    assert (what["kernels"], what["precision"], what["fallback"]) == ("gpu", "fp32", False)
    assert "SwiftShader" in what["adapter"]
    assert what["delegated_nodes"] == what["total_nodes"]
    assert document["ensemble"] == ["xnnpack", "dequantized"]
    assert len(document["deviating_seeds"]) == 3
    completed("explain", run, "--model-explorer")
    explained = [*document_of(run, "explain.json")["findings"].values()]
    assert [one["verdict"]["which"] for one in explained] == ["gpu"] * 3
    assert [one["device_and_twin"]["onset"]["operator_index"] for one in explained] == [
        SHORTCUT
    ] * 3
    overlay = run / "explain" / f"{explained[0]['seed_id']:06d}.model-explorer" / "6-verdict.json"
    marks = json.loads(overlay.read_bytes())["main"]["results"]
    assert marks[str(SHORTCUT)]["value"] == "kernel (GPU accelerator); onset"
    said = call_here("export", run, str(document["deviating_seeds"][0]["seed_id"]))
    assert said.code == 2
    assert "the script of an export does not run" in said.err
    completed("replay", run, "--out", tmp_path / "again", code=1)
    assert len(document_of(tmp_path / "again")["deviating_seeds"]) == 3


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_model_that_the_gpu_refuses_is_one_line(tmp_path: Path) -> None:
    options = ("--device", "emulated-gpu", "--first", "2", "--out", tmp_path / "run")
    said = refused("search", EXAMPLE, *options)
    assert "tensors that are sized while it runs" in said
    assert "add --fold-shapes" in said


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_without_a_driver_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(name, "/nowhere/at_all.json")
    options = ("--device", "emulated-gpu", "--first", "2", "--out", tmp_path / "run")
    said = refused("search", EXAMPLES / "spoken_words", *options)
    assert "apt-get install libvulkan1 chromium" in said


PutProfile = Callable[[str, str], None]

MICRO_BUDGET = (
    *("--find", "kernel", "--seed-ids", "11", "--max-queries", "700", "--shrink", "0"),
    *("--within", "none", "--fail-on", "none"),
)


@pytest.mark.slow
def test_a_run_on_micro_is_explained_and_replayed_and_says_what_arena_it_took(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    pair = EXAMPLE
    said = completed("search", pair, "--device", "emulated-micro", *MICRO_BUDGET, "--out", run)
    assert "an arena of " in " ".join(said.out.split())
    document = document_of(run)
    what = document["devices"][0]["provenance"]
    assert (what["kernels"], what["runtime"]) == ("micro", "tflite-micro")
    assert what["arena_bytes"] > 0
    assert what["precision"] is None
    findings = document["findings"]
    assert findings
    completed("explain", run, findings[0]["seed_id"])
    explained = document_of(run, "explain.json")["findings"].values()
    assert {one["verdict"]["name"] for one in explained} == {"kernel"}
    completed("replay", run, "--out", tmp_path / "again", code=1)
    assert len(document_of(tmp_path / "again")["findings"]) == len(findings)


@pytest.mark.slow
def test_a_survey_and_a_ranking_run_on_micro(tmp_path: Path) -> None:
    pair, device = EXAMPLE, ("--device", "emulated-micro")
    run = tmp_path / "survey"
    asked = ("--conditions", "fog", "--severities", "3", "--first", "30", "--device-queries", "10")
    completed("survey", pair, *device, *asked, "--findings", "0", "--out", run)
    assert document_of(run)["devices"][0]["provenance"]["runtime"] == "tflite-micro"
    other = ("--compressed", pair / "original.tflite")
    budget = ("--first", "2", "--max-queries", "10", "--shrink", "0")
    completed("rank", pair, *device, *other, *budget, "--out", tmp_path / "rank")
    ranking = document_of(tmp_path / "rank", "rank.json")
    assert all(one["latency_seconds"] > 0 for one in ranking["models"])


@pytest.mark.slow
def test_models_that_do_not_fit_the_arena_are_one_line(
    tmp_path: Path, put_profile: PutProfile
) -> None:
    put_profile("small", 'extends = "emulated-micro"\narena_bytes = 4096\n')
    options = ("--device", "small", "--first", "2", "--out", tmp_path / "run")
    said = refused("search", EXAMPLE, *options)
    assert "and the device's profile allows 4,096: set a higher arena_bytes" in said
    put_profile("tiny", 'extends = "emulated-micro"\narena_bytes = 64\n')
    said = refused("conform", "--device", "tiny", "--models", "8", "--out", tmp_path / "run")
    assert said.startswith("no operator can be tried on tiny: its arena takes")


ON_MICRO = ("--device", "emulated-micro", "--ops", "RELU6,GELU", "--dtype", "int8")

ON_GPU = ("--device", "emulated-gpu")


@pytest.mark.slow
def test_what_micro_computes_wrongly_is_found_exported_and_tried_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    completed("conform", *ON_MICRO, "--models", "16", "--out", run, code=1)
    document = document_of(run, "conform.json")
    assert document["device"]["runtime"] == "tflite-micro"
    counted = [one for one in document["findings"] if one["counted"]]
    assert [(one["operator"], one["symptom"]) for one in counted] == [("RELU6", "wrong-values")]
    (refused,) = [one for one in document["refused"] if one["operator"] == "GELU"]
    assert refused["always"]
    assert refused["message"] == "TFLite Micro has no operator GELU"
    archive = tmp_path / "one.zip"
    completed("export", run, counted[0]["number"], "--out", archive)
    shown = reproduce(unpacked(archive, tmp_path / "one"))
    assert shown.returncode == 0, shown.stderr
    assert "here with micro kernels" in shown.stdout
    completed("replay", run, "--out", tmp_path / "again", code=1)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_the_gpu_is_wrong_in_pointwise_convolutions_with_a_stride(tmp_path: Path) -> None:
    run = tmp_path / "run"
    # The network has such a convolution, so that it is found however little time there is to draw.
    network = write_pair(tmp_path / "pair", "pointwise") / "compressed.tflite"
    options = ("--from", network, "--ops", "CONV_2D", "--dtype", "int8", "--models", "1")
    completed("conform", *ON_GPU, *options, "--time-limit", "15s", "--out", run, code=1)
    document = document_of(run, "conform.json")
    assert "SwiftShader" in document["device"]["adapter"]
    wrong = [
        one for one in document["findings"] if one["counted"] and one["symptom"] == "wrong-values"
    ]
    assert wrong
    smallest = [one["smallest"]["operators"][0]["settings"] for one in wrong]
    assert all(
        (one["kernel_h"], one["kernel_w"]) == (1, 1)
        and max(one["stride_h"], one["stride_w"], one["groups"]) > 1
        for one in smallest
    )


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_sum_that_is_an_output_is_wrong_before_a_mean_on_the_gpu(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ("--ops", "ADD,MEAN", "--dtype", "float32", "--graphs", "--models", "24")
    said = call_here("conform", *ON_GPU, *options, "--out", run)
    assert said.code in (0, 1), said.err
    document = document_of(run, "conform.json")
    assert "SwiftShader" in document["device"]["adapter"]
    pair = next(one for one in document["findings"] if one["operator"] == "ADD then MEAN")
    assert pair["arrangement"] == ["the result of ADD is read and is an output"]
    assert document["graphs"]["pairs"] == 4


FOLDED = "shapes folded: SHAPE, STRIDED_SLICE, PACK as constants"

FOLDED_BUDGET = (
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
def test_it_runs_on_the_gpu_whole_and_is_explained_and_replayed_alike(tmp_path: Path) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    said = completed(
        *("search", EXAMPLE, "--device", "emulated-gpu", "--fold-shapes"),
        *(*FOLDED_BUDGET, "--ensemble", "xnnpack", "--out", run),
    )
    assert FOLDED in " ".join(said.out.split())
    document = document_of(run)
    pair, (device,) = document["pair"], document["devices"]
    assert device["provenance"]["delegated_nodes"] == device["provenance"]["total_nodes"]
    assert pair["folded_shapes"]["equal_under"] == ["xnnpack"]
    assert pair["folded_shapes"]["inputs"] == 4
    assert pair["sha256"]["compressed"] != pair["folded_shapes"]["sha256"]
    assert Path(pair["compressed"]) == COMPRESSED
    assert document["findings"]
    completed("explain", run, "--model-explorer")
    explained = document_of(run, "explain.json")["findings"]
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
    completed("replay", run, "--out", again, code=1)
    replayed = document_of(again)
    assert replayed["pair"]["folded_shapes"]["sha256"] == pair["folded_shapes"]["sha256"]
    assert len(replayed["findings"]) == len(document["findings"])


@pytest.mark.slow
def test_the_pair_says_it_and_what_is_exported_is_what_ran(folding: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    completed("search", folding, *FOLDED_BUDGET, "--out", run)
    document = document_of(run)
    found = document["findings"][0]["seed_id"]
    completed("export", run, str(found), "--out", tmp_path / "finding.zip")
    shutil.unpack_archive(tmp_path / "finding.zip", tmp_path / "unpacked")
    told = document_of(tmp_path / "unpacked", "finding.json")
    assert told["sha256"]["compressed"] == document["pair"]["folded_shapes"]["sha256"]
    unfolded = ("--no-fold-shapes", "--resume", "--out", run)
    said = completed("search", folding, *FOLDED_BUDGET, *unfolded, code=2).err
    assert "was begun with --fold-shapes, not without" in said
    assert "shapes folded" in completed("repair", run, "--out", tmp_path / "repaired", code=2).err


def test_the_key_of_a_pair_is_true_or_false(folding: Path, tmp_path: Path) -> None:
    text = (folding / "pair.toml").read_text().replace("= true", '= "yes"')
    (folding / "pair.toml").write_text(text)
    said = refused("search", folding, "--out", tmp_path / "run")
    assert "fold_shapes is 'yes'; expected true or false" in said


@pytest.mark.old_board
def test_another_runtime_foretells_a_device_that_has_it(
    tmp_path: Path, old_board_python: Path, put_profile: PutProfile
) -> None:
    python = f'python = "{old_board_python}"\n'
    put_profile("board", f'transport = "emulated"\nkernels = "builtin"\n{python}')
    member = f"builtin@{old_board_python}"
    device = ("--device", "board", "--trust")
    options = (
        *("--find", "kernel", *device, "--first", "6"),
        *("--shrink", "0", "--fail-on", "none"),
    )
    budget = ("--max-queries", "950")  # before near-ties are asked about too

    completed(
        "search", EXAMPLE, *options, *budget, "--ensemble", f"xnnpack,{member}", "--out", "run"
    )

    document = document_of(tmp_path / "run")
    assert document["ensemble"] == ["xnnpack", member]
    assert document["totals"]["host_evaluations"][f"twin-{member}"] > 0
    assert document["findings"]
    # It is the very runtime of the device, so whatever it foretells is so.
    assert document["totals"]["device_queries"] == len(document["findings"])
    completed("search", EXAMPLE, *options, *budget, "--ensemble", f"xnnpack,{member}",
                 "--out", "run", "--resume")  # fmt: skip
    assert untimed(document_of(tmp_path / "run")) == untimed(document)
