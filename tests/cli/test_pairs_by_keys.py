"""Pairs that need no Python code: from `pair.toml` to a check, and what follows a search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from brief_commands import brief_checks
from called_commands import call_here, completed, document_of, refused
from edgeflare.release.check_document import load_check
from keyed_pairs import WINDOWS, write_anomaly_pair, write_keypoint_pair, write_wake_word_pair
from reproductions import reproduce, unpacked

pytestmark = pytest.mark.slow

DEVICE = ("--device", "emulated-builtin")
FEW = ("--limit", "20", "--no-near")
UNREFINED = ("--shrink", "0", "--within", "none", "--fail-on", "none")


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    with brief_checks():
        yield


@pytest.fixture(scope="module")
def anomaly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_anomaly_pair(tmp_path_factory.mktemp("anomaly") / "pair")


@pytest.mark.parametrize(
    ("write", "inferences"), [(write_anomaly_pair, WINDOWS), (write_wake_word_pair, 49)]
)
def test_a_pair_goes_from_its_keys_to_a_check(
    write: Callable[[Path], Path], inferences: int, tmp_path: Path
) -> None:
    pair, out = write(tmp_path / "pair"), tmp_path / "out"
    said = call_here("check", pair, *DEVICE, *FEW, "--out", out)
    assert said.code == 0, said.err
    found = load_check(out / "check.json")
    assert found.figures.data is not None
    assert found.figures.data.inputs == 20
    (decisions,) = (one for one in found.sections if one.name == "decisions")
    assert "right on 100.0% as the original" in decisions.sentence
    (cost,) = found.figures.costs
    assert cost.inferences == inferences
    assert f"for the {inferences} inferences of an input" in call_here("report", out, "--json").out


KEYPOINTS = """tolerance = {tolerance}
distance = "mean-point"
point_size = 3
dimensions = 2
picture = [0, 0, 12, 12]
"""


def test_keypoints_go_from_their_keys_to_a_check_a_page_and_an_export(tmp_path: Path) -> None:
    """Points of (x, y, confidence) in pixels, of which x and y count."""
    pair = write_keypoint_pair(tmp_path / "pair", KEYPOINTS.format(tolerance=1.0))
    out, run = tmp_path / "out", tmp_path / "run"
    said = call_here("check", pair, *DEVICE, *FEW, "--out", out)
    assert said.code == 0, said.err
    found = load_check(out / "check.json")
    (decisions,) = (one for one in found.sections if one.name == "decisions")
    assert "right on 100.0% as the original" in decisions.sentence
    write_keypoint_pair(pair, KEYPOINTS.format(tolerance=0.03))
    few = ("--max-queries", "20", "--limit", "6", *UNREFINED)
    completed("search", pair, *DEVICE, "--out", run, *few)
    document = document_of(run)
    entry = (*document["findings"], *document["deviating_seeds"])[0]
    (view,) = entry["answers"]
    each = [point["distance"] for point in view["points"]]
    assert view["distance"] == pytest.approx(np.mean(each), rel=1e-4)
    assert view["distance"] > view["tolerance"] == 0.03
    completed("report", run, "--html")
    page = (run / "report.html").read_text()
    for arm in ("original", "device"):
        assert f'<g class="{arm} differs"><title>{arm}: point' in page
    assert "the distance is in the unit of the tolerance" in page
    archive = tmp_path / "one.zip"
    completed("export", run, entry["seed_id"], "--out", archive)
    shown = reproduce(unpacked(archive, tmp_path / "one"))
    assert shown.returncode == 0, shown.stderr
    here = re.search(r"^(\S+) apart here, (\S+) when", shown.stdout, re.MULTILINE)
    assert here
    assert float(here[1]) == pytest.approx(view["distance"], rel=1e-3)


def scores_by_hand(pair: Path, model: str) -> list[float]:
    """The scores of the seeds by the runtime itself, a window at a time."""
    from ai_edge_litert.interpreter import Interpreter  # noqa: PLC0415 - slow to import

    from keyed_pairs import FRONT_END, HOP, LENGTH  # noqa: PLC0415

    runner = Interpreter(str(pair / model))
    runner.allocate_tensors()
    given, made = runner.get_input_details()[0]["index"], runner.get_output_details()[0]["index"]
    scores = []
    for rows in FRONT_END.features(np.load(pair / "seeds.npz")["waves"]):
        apart = []
        for begin in range(0, len(rows) - LENGTH + 1, HOP):
            window = rows[begin : begin + LENGTH].reshape(1, -1)
            runner.set_tensor(given, window)
            runner.invoke()
            apart.append(np.square(runner.get_tensor(made) - window).mean())
        scores.append(float(np.mean(apart)))
    return scores


def test_a_score_is_pooled_over_windows_and_kept_in_all_that_follows(
    anomaly: Path, tmp_path: Path
) -> None:
    toml = (anomaly / "pair.toml").read_text()
    hand = {name: scores_by_hand(anomaly, f"{name}.tflite") for name in ("original", "compressed")}
    apart = np.subtract(hand["compressed"], hand["original"])
    at = int(np.abs(apart).argmax())
    between = (hand["original"][at] + hand["compressed"][at]) / 2
    text = re.sub(r"threshold = [\d.]+", f"threshold = {between}", toml)
    paths = re.sub(r'= "(\w+\.\w+)"', lambda one: f'= "{anomaly / one[1]}"', text)
    (tmp_path / "pair").mkdir()
    (tmp_path / "pair" / "pair.toml").write_text(paths)
    run = tmp_path / "run"
    few = ("--max-queries", "5", *UNREFINED)
    completed("search", tmp_path / "pair", *DEVICE, "--out", run, *few)
    (entry,) = (one for one in document_of(run)["deviating_seeds"] if one["seed_id"] == at)
    (view,) = entry["answers"]
    for arm, name in (("original", "original"), ("device", "compressed")):
        assert view["scores"][arm] == pytest.approx(hand[name][at], rel=1e-5)
    again = tmp_path / "again"
    completed("replay", run, "--out", again, code=1)
    assert at in {one["seed_id"] for one in document_of(again)["deviating_seeds"]}
    archive = tmp_path / "one.zip"
    completed("export", run, at, "--out", archive)
    shown = reproduce(unpacked(archive, tmp_path / "one"))
    assert shown.returncode == 0, shown.stderr


def changed(pair: Path, folder: Path, old: str, new: str) -> Path:
    folder.mkdir()
    text = (pair / "pair.toml").read_text()
    assert old in text
    text = re.sub(r'= "(\w+\.\w+)"', lambda one: f'= "{pair / one[1]}"', text.replace(old, new))
    (folder / "pair.toml").write_text(text)
    return folder


SLIPS: list[tuple[str, str, str]] = [
    ('frames = "mean"\n', "", 'such as frames = "mean"'),
    ("\n[inputs.sound]", "frames = 9\n[inputs.sound]", f"write frames = {WINDOWS}"),
    ("length = 5", "length = 7", "which is no window of 7 rows"),
    ("[inputs.sound.windows]\nlength = 5\nstep = 2\n", "", "check samples and the settings"),
    ('domain = "audio"', 'domain = "array"', "unknown key sample_rate"),
]


@pytest.mark.parametrize(("old", "new", "line"), SLIPS)
def test_a_slip_is_corrected_with_the_line(
    anomaly: Path, tmp_path: Path, old: str, new: str, line: str
) -> None:
    pair = changed(anomaly, tmp_path / "pair", old, new)
    assert line in refused("search", pair, *DEVICE, "--dry-run")


def test_a_dry_run_says_how_many_inferences_an_input_is(anomaly: Path) -> None:
    said = " ".join(completed("search", anomaly, *DEVICE, "--dry-run").out.split())
    assert "windows (length 5, step 2)" in said
    assert f"{WINDOWS} windows in an input, an inference each" in said
