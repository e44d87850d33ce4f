"""Faults planted before and behind real models, on the device's path alone: never called kernels.

Needs the models of `EDGEFLARE_PAIRS`, as `test_development_pairs.py` does.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
FILES = ("original.tflite", "compressed.tflite", "seeds.npz")
DEVICE = ("--device", "emulated-xnnpack")

SCORE_STEP = 36 / 255
"""Of the scores of the compressed BlazeFace, which are logits from -30 to 6 in 8 bits."""

DECODE = """
import numpy as np

CELLS = ((16, 2), (8, 6))


def overlap(box, other):
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    sizes = [(one[2] - one[0]) * (one[3] - one[1]) for one in (box, other)]
    return both / (sum(sizes) - both)


def decode(outputs):
    regressors, logits = sorted(
        (array[0] for array in outputs.values()), key=lambda one: -one.shape[1]
    )
    anchors = np.array([
        ((x + 0.5) / cells, (y + 0.5) / cells)
        for cells, repeats in CELLS
        for y in range(cells) for x in range(cells) for _ in range(repeats)
    ])
    scores = 1 / (1 + np.exp(-np.clip(logits[:, 0], -80, 80)))
    centre, half = regressors[:, :2] / 128 + anchors, regressors[:, 2:4] / 256
    boxes = np.concatenate([centre - half, centre + half], axis=1)
    kept = []
    for at in np.argsort(-scores, kind="stable")[: np.count_nonzero(scores >= 0.3)]:
        if all(overlap(boxes[at], boxes[other]) <= 0.3 for other in kept):
            kept.append(at)
    return [{RETURNED} for at in kept[:100]]
"""


class Planted(NamedTuple):
    """A fault: the pair, what its device has of its own, and the verdict that names the stage.

    Attributes:
        seeds: how many are evaluated; gross faults show on a few.
        returned: what the faulty function returns of an object; empty where there is no function.

    """

    pair: str
    own: str
    verdict: str
    seeds: int = 3
    returned: str = ""


BY_FUNCTION = '[device.task]\ndecoding = "faulty.py:decode"\ncells = []\n'

PLANTED = {
    "anchors swapped": Planted(
        "blazeface_short_int8", "[device.task]\ncells = [[8, 6], [16, 2]]\n", "output-stage"
    ),
    "threshold off by one step": Planted(
        "blazeface_short_int8",
        f"[device.task]\nthreshold = {1 / (1 + math.exp(-SCORE_STEP)):.4f}\n",
        "output-stage",
        58,
    ),
    "classes shifted by one": Planted(
        "blazeface_short_int8", BY_FUNCTION, "output-stage", 3, "(*boxes[at], scores[at], 1)"
    ),
    "coordinates in another order": Planted(
        "blazeface_short_int8",
        BY_FUNCTION,
        "output-stage",
        3,
        "(*boxes[at][[1, 0, 3, 2]], scores[at], 0)",
    ),
    "front end with another window": Planted(
        "kws_digits_gru_state",
        "[device.inputs.features]\nfront_end.frame_length = 240\n",
        "input-stage",
        60,
    ),
}


def edgeflare(*arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "edgeflare", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, f"{arguments[0]}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", params=PLANTED)
def planted(request: pytest.FixtureRequest) -> Planted:
    return PLANTED[request.param]


@pytest.fixture(scope="module")
def pair(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = Path(os.environ.get("EDGEFLARE_PAIRS", HERE)) / planted.pair
    if not all((models / file).is_file() for file in FILES):
        pytest.skip(f"the models of {planted.pair} are not here: name a folder by EDGEFLARE_PAIRS")
    folder = tmp_path_factory.mktemp("pair") / planted.pair
    shutil.copytree(HERE / planted.pair, folder)
    for file in FILES:
        (folder / file).symlink_to((models / file).absolute())
    said = (folder / "pair.toml").read_text()
    (folder / "pair.toml").write_text(f"{said}\n{planted.own}")
    (folder / "faulty.py").write_text(DECODE.replace("{RETURNED}", planted.returned))
    return folder


@pytest.fixture(scope="module")
def explained(pair: Path, planted: Planted) -> list[dict[str, Any]]:
    run = pair.parent / "run"
    bounds = ("--limit", str(planted.seeds), "--max-queries", "1", "--fail-on", "none")
    # Between two neighbouring thresholds lies one value of a score in 8 bits, which is a tie.
    find = ("--find", "kernel", "--ties", "include")
    edgeflare("search", pair, "--trust", *DEVICE, *find, *bounds, "--out", run)
    function = ("--function", pair / "faulty.py:decode") if planted.returned else ()
    edgeflare("explain", run, *function)
    return list(json.loads((run / "explain.json").read_text())["findings"].values())


def test_explain_names_the_stage_and_never_kernels(
    explained: list[dict[str, Any]], planted: Planted
) -> None:
    assert explained
    assert {one["verdict"]["name"] for one in explained} == {planted.verdict}
    assert all(one["verdict"]["which"] is None for one in explained)


def test_the_dry_run_names_the_stage(pair: Path, planted: Planted) -> None:
    said = " ".join(edgeflare("search", pair, "--trust", *DEVICE, "--dry-run").split())
    _, _, inputs = said.partition("input stage: the model's inputs on the device differ from the")
    apart = float(inputs.split("at most ")[1].split()[0])
    assert (apart > 0) == (planted.verdict == "input-stage")
    assert (" changes the decision on 0 of " in said) == (planted.verdict == "input-stage")
