"""What a repair takes, writes and says of itself, and what of it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface
from edgeflare.repair.image_classifier import require_image_classifier
from edgeflare.repair.judging.judged_inputs import FRESH, TIGHT
from edgeflare.repair.repair_file import by_shifts, holds_repair, read_repair
from edgeflare.repair.repair_outcome import OnDevice
from edgeflare.repair.repair_requirements import LEAST_SEEDS, can_be_repaired
from edgeflare.repair.repair_summary import repair_summary
from edgeflare.repair.repair_verdict import verdict
from edgeflare.run.run_directory import RunDirectory
from judgements import figures, judgement
from repaired_example import repair_by_shifts, repaired_example

EXAMPLES = Path(__file__).parents[2] / "examples"


def is_taken(pair: Pair, seeds: int = LEAST_SEEDS, replay: object = None) -> bool:
    past: Any = SimpleNamespace(
        document=SimpleNamespace(replay=replay),
        header=SimpleNamespace(pair=pair.interface.to_json()),
    )
    return can_be_repaired(pair, past, seeds)


def test_a_repair_is_offered_only_of_what_it_takes() -> None:
    lenet = load_pair(EXAMPLES / "fashion_lenet4")
    assert is_taken(lenet)
    assert not is_taken(lenet, LEAST_SEEDS - 1)
    assert not is_taken(lenet, replay=object())
    assert not is_taken(replace(lenet, fold_shapes=True))
    assert not is_taken(replace(lenet, original=None))
    swapped = replace(lenet, original=str(lenet.compressed), compressed=Path(str(lenet.original)))
    assert not is_taken(swapped)
    assert not is_taken(load_pair(EXAMPLES / "face_detection"))


STEREO = PairInterface(inputs=(PairInput("image"), PairInput("offset", search=False)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fashion_lenet4", None),
        ("spoken_words", "the domain audio and the task classification"),
        ("face_detection", "the domain image and the task detection"),
        ("stereo", "several inputs and the task classification"),
    ],
)
def test_a_classifier_of_images_can_be_repaired_and_nothing_else(
    name: str, kind: str | None, refusal: Callable[..., str]
) -> None:
    interface = STEREO if name == "stereo" else load_pair(EXAMPLES / name).interface
    if kind is None:
        require_image_classifier(interface, name)
    else:
        said = refusal(require_image_classifier, interface, name)
        assert f"of images with one input, and {name} is of {kind}: " in said


__all__ = ["repaired_example"]


def written(folder: Path, document: Any) -> RunDirectory:
    (folder / "repair.json").write_text(json.dumps(document))
    return RunDirectory(folder)


@pytest.mark.slow
def test_a_repair_by_fitting_or_by_shifts_is_read(repaired_example: Path, tmp_path: Path) -> None:
    found = read_repair(RunDirectory(repaired_example))
    assert found == json.loads((repaired_example / "repair.json").read_bytes())
    assert not by_shifts(found)
    document = repair_by_shifts()
    found = read_repair(written(tmp_path, document))
    assert found == document
    assert by_shifts(found)


def test_a_folder_with_a_run_is_no_repair(tmp_path: Path) -> None:
    assert not holds_repair(RunDirectory(tmp_path))
    directory = written(tmp_path, {})
    assert holds_repair(directory)
    directory.journal.touch()
    assert not holds_repair(directory)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "it is [], expected object"),
        ({}, "it has no schema"),
        ({"schema": "edgeflare.repair/v9"}, 'schema is "edgeflare.repair/v9", but must be one of'),
        ({"schema": "edgeflare.repair/v1"}, "it has no edgeflare, run"),
        ({"schema": "edgeflare.repair/v2"}, "it has no edgeflare, pair"),
    ],
)
def test_what_is_no_repair_is_a_line_with_the_place(
    tmp_path: Path, document: Any, says: str
) -> None:
    with pytest.raises(UserError) as error:
        read_repair(written(tmp_path, document))
    assert str(error.value).startswith(f"{tmp_path / 'repair.json'} is damaged: {says}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("judged", "tight", "after", "big"), -1, "judged.tight.after.big is -1"),
        (("candidates", 0, "score"), "low", 'candidates[0].score is "low"'),
        (("shown", 0, "change"), "new", 'shown[0].change is "new"'),
        (("shown", 0, "original", "label"), None, "shown[0].original.label is null"),
        (("front",), [1], "front[0] is 1"),
    ],
)
def test_a_damaged_value_is_named(
    repaired_example: Path, tmp_path: Path, place: tuple[str | int, ...], value: Any, says: str
) -> None:
    document = deepcopy(read_repair(RunDirectory(repaired_example)))
    *before, last = place
    at: Any = document
    for key in before:
        at = at[key]
    at[last] = value
    with pytest.raises(UserError) as error:
        read_repair(written(tmp_path, document))
    assert f"repair.json is damaged: {says}" in str(error.value)


def test_a_document_outside_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(json.dumps(repair_by_shifts()))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "repair.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UserError, match="outside of it"):
        read_repair(RunDirectory(folder))


def document(**changes: Any) -> dict[str, Any]:
    figures = {"asked": 1600, "deviating": 725, "big": 300, "strict": 100}
    better = {**figures, "deviating": 248}
    tight = {"before": figures, "after": better, "mended": 500, "broken": 23, "p": 2e-9}
    return {
        "schema": "edgeflare.repair/v2",
        "pair": {"name": "a|b"},
        "written": True,
        "why": "725 deviate before and 248 after",
        "repaired": {
            "device": "board", "bytes_before": 100, "bytes_after": 90,
            "seconds_before": 2e-6, "seconds_after": 1e-6, "ratio": 0.5,
        },
        "chosen": "ranges",
        "judged": dict.fromkeys(("tight", "wide", "sampled"), tight),
        "offered": None,
        "candidates": [],
        **changes,
    }  # fmt: skip


def test_a_repair_has_a_row_for_each_set() -> None:
    """One without a model says why alone, and one by shifts has its repairers."""
    said = repair_summary(document())
    assert "## EdgeFlare repair: a\\|b" in said
    assert "✅ A repaired model is written: 725 deviate before and 248 after." in said
    assert "It has -10 bytes, and takes -1.0 µs (-50.0%) on board." in said
    assert "| tight | 1,600 | 725 → 248 | 300 → 300 | 100 → 100 | 500 | 23 | 2e-09 |" in said
    nothing = {"written": False, "repaired": None, "judged": None, "why": "nothing <gains>"}
    said = repair_summary(document(**nothing))
    assert said.endswith("⚪ No model is written: nothing \\<gains\\>.\n")
    assert "|" not in said.removeprefix("## EdgeFlare repair: a\\|b")
    shown = repair_by_shifts()
    said = repair_summary(shown)
    assert "| shifts (the default) |" in said
    assert f"{100 * shown['repairers']['shifts']['net']['value']:+.1f}" in said


def test_what_more_cost_would_give_stands_beside_what_is_chosen() -> None:
    sides = {"before": {"deviating": 725}, "after": {"deviating": 3}}
    offered = {
        "candidate": "weights-only",
        "options": ["--max-latency none"],
        "judged": dict.fromkeys(("tight", "wide", "sampled"), sides),
    }
    needs = {"--max-latency": "+187%"}
    tried = {"name": "weights-only", "latency_ratio": 2.87, "bytes": 43600, "needs": needs}
    for changes, instead in (({}, "744"), ({"written": False, "repaired": None}, "2,175")):
        said = repair_summary(document(offered=offered, candidates=[tried], **changes))
        assert (
            f"weights-only: 9 instead of {instead} of these inputs near the boundary deviate, at ×"
            " 2.87 of the time and 43,600 bytes, which needs --max-latency +187%: --max-latency"
            " none."
        ) in said.replace("\\", "")


def on_device(before: int, after: int) -> OnDevice:
    sides = {TIGHT: figures(before)}, {TIGHT: figures(after)}
    return OnDevice("board", *sides, same_labels=1000, asked=1000)


def test_a_sure_gain_on_host_and_devices_is_written() -> None:
    written, why = verdict(judgement(20, 5), [on_device(100, 80)])
    assert written
    assert why == "300 held-out inputs near the boundary deviate before and 255 after"


def test_what_is_not_sure_or_worse_anywhere_is_not() -> None:
    written, why = verdict(judgement(4, 3), [on_device(100, 80)])
    assert not written
    assert "12 are mended and 9 broken" in why
    written, why = verdict(judgement(20, 5), [on_device(100, 80), on_device(100, 100)])
    assert not written
    assert why == "on board 100 held-out inputs would deviate instead of 100"
    silent = on_device(100, 0)
    silent = replace(silent, after={TIGHT: replace(figures(0), failed=1000)})
    written, why = verdict(judgement(20, 5), [silent])
    assert not written
    assert why == "on board it gives no answer on 1,000 held-out inputs"
    good = judgement(20, 5)
    fresh = replace(
        good,
        before={**good.before, FRESH: figures(10)},
        after={**good.after, FRESH: figures(11)},
    )
    written, why = verdict(fresh, [on_device(100, 80)])
    assert not written
    assert why == "on fresh data 11 inputs would deviate instead of 10"
