"""Pairs of other domains and tasks, to which nothing is added but a `pair.toml`.

The models may not be passed on, so only the `pair.toml` of each is here. `EDGEFLARE_PAIRS` names a
folder that has a folder of models and seeds for each; without it, what needs them is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path

import pytest

from edgeflare.core.tensor import Tensor
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_interface import PairInterface

HERE = Path(__file__).parent
FILES = ("original.tflite", "compressed.tflite", "seeds.npz")

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "blazeface_short_int8": {"": (1, 128, 128, 3)},
    "denoise_dtln1_state": {"input_2": (125, 1, 1, 257)},
    "kws_digits_gru_state": {"features": (49, 1, 64)},
    "kws_mlperf_tiny": {"sound": (1, 49, 10, 1)},
    "selfie_segmentation_int8": {"": (1, 256, 256, 3)},
    "stt_digits_ctc": {"features": (1, 398, 32)},
    "tabular_cancer_2in_2out": {"means": (1, 10), "errors_and_worst": (1, 19)},
}
"""What the compressed model of each pair takes of each input; of all frames of a clip."""

SOUNDS = ("denoise_dtln1_state", "kws_digits_gru_state", "kws_mlperf_tiny", "stt_digits_ctc")

NOT_ON_THE_OLD_BOARD = {"selfie_segmentation_int8"}
"""What tflite-runtime 2.14 cannot load: a TRANSPOSE_CONV of float inputs and 8-bit weights."""


def described(name: str) -> PairInterface:
    return load_pair(HERE / name).interface


@pytest.mark.parametrize("name", SHAPES)
def test_it_says_what_the_models_take(name: str) -> None:
    interface = described(name)
    taken = {one.name: one for one in interface.inputs}
    assert taken.keys() == SHAPES[name].keys()
    for key, shape in SHAPES[name].items():
        assert prod(taken[key].opened_domain.input_shape(Tensor(key, shape, "float32"), name)) > 0
    frames = interface.invocation.frames
    assert all(not frames or shape[0] == frames for shape in SHAPES[name].values())


@pytest.mark.parametrize("name", SOUNDS)
def test_another_number_of_features_is_refused(name: str, refusal: Callable[..., str]) -> None:
    (one,) = described(name).inputs
    shape = (SHAPES[name][one.name][0] + 1, *SHAPES[name][one.name][1:-1], 63)
    said = refusal(
        one.opened_domain.input_shape, Tensor(one.name, shape, "float32"), "model.tflite"
    )
    assert "check samples and the settings of the front end" in said


def edgeflare(*arguments: str | Path, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "edgeflare", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode in codes, f"{arguments[0]}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", params=list(SHAPES))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of a search from four seeds of a pair."""
    name = str(request.param)
    models = Path(os.environ.get("EDGEFLARE_PAIRS", HERE)) / name
    if not all((models / file).is_file() for file in FILES):
        pytest.skip(f"the models of {name} are not here: name a folder by EDGEFLARE_PAIRS")
    pair = tmp_path_factory.mktemp("pair") / name
    pair.mkdir()
    shutil.copy(HERE / name / "pair.toml", pair)
    for file in models.iterdir():
        if file.name != "pair.toml":
            (pair / file.name).symlink_to(file.absolute())
    limits = ("--first", "4", "--max-queries", "100", "--shrink", "20", "--strengthen", "20")
    folder = pair.parent / "run"
    edgeflare("search", pair, *limits, "--fail-on", "none", "--out", folder)
    return folder


@pytest.mark.slow
def test_it_is_searched_and_every_finding_is_verified(run: Path) -> None:
    document = json.loads((run / "run.json").read_bytes())
    assert document["findings"]
    for one in document["findings"]:
        assert one["verified"]
        assert (run / one["file"]).is_file()


@pytest.mark.slow
def test_it_is_explained_and_reported(run: Path) -> None:
    edgeflare("explain", run)
    findings = json.loads((run / "run.json").read_bytes())["findings"]
    assert len(json.loads((run / "explain.json").read_bytes())["findings"]) >= len(findings)
    edgeflare("report", run, "--html", "--junit")
    page = (run / "report.html").read_text()
    assert all(f"seed {one['seed_id']}" in page.lower() for one in findings)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["emulated-builtin", "old-board"])
def test_its_findings_are_tried_again(
    board: str,
    run: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = json.loads((run / "run.json").read_bytes())
    if board == "old-board":
        if before["pair"]["name"] in NOT_ON_THE_OLD_BOARD:
            pytest.skip("tflite-runtime 2.14 does not load the compressed model")
        python = request.getfixturevalue("old_board_python")
        Path("device_profiles").mkdir()
        Path("device_profiles/old-board.toml").write_text(
            f'transport = "emulated"\npython = "{python}"\n'
        )
    edgeflare("replay", run, "--device", board, "--trust", "--out", "again", codes=(0, 1))
    after = json.loads(Path("again/run.json").read_bytes())
    tried = len(before["findings"]) + len(before["deviating_seeds"])
    now = len(after["findings"]) + len(after["deviating_seeds"]) + len(after["replay"]["mended"])
    assert now == tried
    if board == "emulated-builtin":
        assert not after["replay"]["mended"]
