"""Files of a repair: what it takes, goes on with, writes, says of itself, and refuses."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings, read_settings
from edgeflare.record.folder import FolderKind
from edgeflare.repair.candidate_choice import verdict
from edgeflare.repair.candidate_details import CandidateDetails, PrecisionDetails
from edgeflare.repair.candidate_store import FOLDER, Attempt, StoredCandidates
from edgeflare.repair.judging.judgement import Figures
from edgeflare.repair.judging.judgement_inputs import TIGHT
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_cost import Latency
from edgeflare.repair.repair_document import (
    BeforeAndAfter,
    OnDevice,
    TriedCandidate,
    read_repair,
    repair_bytes,
)
from edgeflare.repair.repair_output import MODEL, RECIPE, write_document, write_pair, write_repaired
from edgeflare.repair.repair_request import DEFAULT_REQUEST
from edgeflare.repair.repair_requirements import (
    LEAST_SEEDS,
    can_be_repaired,
    original_file,
    tries_shifts,
    why_not_repaired,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_directory import RunDirectory, holds_repair
from judgements import figures, judgement, one_set
from kills import Kill, killed_at_each, put_notes, require_notes
from repaired_example import BY_SHIFTS, repair_by_shifts, repaired_example
from stored_repairs import REPAIR

EXAMPLES = Path(__file__).parents[2] / "examples"


def is_taken(pair: Pair, seeds: int = LEAST_SEEDS, replay: object = None) -> bool:
    past: Any = SimpleNamespace(
        document=SimpleNamespace(replay=replay),
        header=SimpleNamespace(pair=pair.interface.described()),
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
    assert is_taken(load_pair(EXAMPLES / "face_detection"))


def test_why_a_pair_is_not_repaired_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lenet = load_pair(EXAMPLES / "fashion_lenet4")
    assert why_not_repaired(load_pair(EXAMPLES / "face_detection"), LEAST_SEEDS) is None
    assert "needs at least 50" in str(why_not_repaired(lenet, LEAST_SEEDS - 1))
    monkeypatch.setitem(sys.modules, "litert_quantizer", None)
    without = why_not_repaired(lenet, LEAST_SEEDS)
    assert str(without).endswith("pip install 'edgeflare[repair]'")


def test_methods_that_differentiate_are_refused_without_jax_and_auto_is_not(
    monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setenv("XLA_FLAGS", "")  # array_library adds to them
    for name in [one for one in sys.modules if one.startswith("edgeflare.whitebox")]:
        monkeypatch.delitem(sys.modules, name)
    pair = load_pair(EXAMPLES / "fashion_lenet4")
    for method in ("learning", "dare"):
        asked = structs.replace(DEFAULT_REQUEST, method=method)
        said = refusal(original_file, pair, None, asked)
        assert said.endswith("pip install 'edgeflare[whitebox]'")
    assert original_file(pair, None, DEFAULT_REQUEST)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("spoken_words", "the domain audio and the task classification"),
        ("face_detection", "the domain image and the task detection"),
    ],
)
def test_shifts_are_of_classifiers_of_images_alone(
    name: str, kind: str, refusal: Callable[..., str]
) -> None:
    shifts = structs.replace(DEFAULT_REQUEST, method="shifts")
    pair = load_pair(EXAMPLES / name)
    said = refusal(original_file, pair, object(), shifts)
    assert f"of images with one input, and {pair.name} is of {kind}: " in said
    assert not tries_shifts(pair, cast("PastRun", object()), shifts)
    assert original_file(load_pair(EXAMPLES / "fashion_lenet4"), None, shifts) is None


__all__ = ["repaired_example"]


def written(folder: Path, document: Any) -> RunDirectory:
    (folder / "repair.json").write_text(json.dumps(document))
    return RunDirectory(folder)


@pytest.mark.slow
def test_a_repair_by_fitting_or_by_shifts_is_read(repaired_example: Path, tmp_path: Path) -> None:
    for path in (repaired_example / "repair.json", BY_SHIFTS):
        document = json.loads(path.read_bytes())
        found = read_repair(written(tmp_path, document))
        assert json.loads(repair_bytes(found)) == document


def test_a_folder_with_a_run_is_no_repair(tmp_path: Path) -> None:
    assert not holds_repair(RunDirectory(tmp_path))
    directory = written(tmp_path, {})
    assert holds_repair(directory)
    directory.journal.touch()
    assert not holds_repair(directory)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "not of the schema edgeflare.repair/v1"),
        ({"schema": "edgeflare.repair/v9"}, "not of the schema edgeflare.repair/v1"),
        ({"schema": "edgeflare.repair/v1"}, "damaged: it has no edgeflare"),
    ],
)
def test_what_is_no_repair_is_a_line_with_the_place(
    tmp_path: Path, document: Any, says: str
) -> None:
    with pytest.raises(UserError) as error:
        read_repair(written(tmp_path, document))
    assert str(error.value).startswith(f"{tmp_path / 'repair.json'} is {says}")


DROPPED, OFFERED = object(), object()
REPAIRERS = ("candidates", 0, "details", "shifts", "repairers")
ANSWER = {"label": 1, "probability": 0.5, "margin": 0.25}
SHOWN = {
    "set": "tight", "change": "mended", "seed_id": 3, "file": "inputs/mended-01.png",
    "original": ANSWER, "before": ANSWER, "after": ANSWER,
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("judged", "tight", "after", "wide_margin"), -1, "judged.tight.after.wide_margin is -1"),
        (("judged", "sampled"), DROPPED, "judged has no sampled"),
        (("candidates", 0, "score"), "low", 'candidates[0].score is "low"'),
        (("candidates", 0, "needs"), {"--test": "x"}, 'candidates[0].needs is {"--test": "x"}'),
        (("candidates", 0, "details", "shift"), 1, 'details has the unknown key "shift"'),
        (("candidates", 0, "details", "shifts", "folds"), 0, "details.shifts.folds is 0"),
        (
            (*REPAIRERS, "shifts", "net", "low"),
            "a",
            "repairers[...].net.low: expected float, got str",
        ),
        ((*REPAIRERS, "perceptron"), DROPPED, "details.shifts.repairers is {"),
        ((*REPAIRERS, "other"), {}, "details.shifts.repairers is {"),
        (("shown", 0, "change"), "new", 'shown[0].change is "new"'),
        (("shown", 0, "original", "label"), None, "shown[0].original.label is null"),
        (("front",), [1], "front[0] is 1"),
        (("plan", "target"), "magic", 'plan.target is "magic"'),
        (("repaired", "turns"), 0, "repaired.turns is 0"),
        (("judged",), None, "written is true, but judged is null"),
        (("offered",), OFFERED, "offered.candidate is 'gone', but candidates has none"),
    ],
)
def test_a_damaged_value_is_named(
    tmp_path: Path, place: tuple[str | int, ...], value: Any, says: str
) -> None:
    document = json.loads(BY_SHIFTS.read_bytes())
    document |= {"shown": [deepcopy(SHOWN)], "offered": None}
    *before, last = place
    at: Any = document
    for key in before:
        at = at[key]
    if value is DROPPED:
        del at[last]
    elif value is OFFERED:
        at[last] = {"candidate": "gone", "options": ["x"], "judged": document["judged"]}
    else:
        at[last] = value
    with pytest.raises(UserError) as error:
        read_repair(written(tmp_path, document))
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'repair.json'} is damaged: ")
    assert says in message
    assert "\n" not in message


def test_a_document_outside_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    shutil.copy(BY_SHIFTS, tmp_path / "elsewhere.json")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "repair.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UserError, match="outside of it"):
        read_repair(RunDirectory(folder))


def on_device(before: Figures, after: Figures) -> OnDevice:
    sets = {TIGHT: BeforeAndAfter(before, after)}
    return OnDevice(device="board", sets=sets, inputs=1000, same_labels=1000)


WORKED = on_device(figures(100), figures(80))


def test_a_sure_gain_on_host_and_devices_is_written() -> None:
    written, why = verdict(judgement(20, 5), [WORKED])
    assert written
    assert why == "300 held-out inputs near the boundary deviate before and 255 after"


def test_what_is_not_sure_or_worse_anywhere_is_not() -> None:
    written, why = verdict(judgement(4, 3), [WORKED])
    assert not written
    assert "12 are mended and 9 broken" in why
    written, why = verdict(judgement(20, 5), [WORKED, on_device(figures(100), figures(100))])
    assert not written
    assert why == "on board 100 held-out inputs would deviate instead of 100"
    silent = on_device(figures(100), structs.replace(figures(0), failed=1000))
    written, why = verdict(judgement(20, 5), [silent])
    assert not written
    assert why == "on board it gives no answer on 1,000 held-out inputs"
    fresh = structs.replace(judgement(20, 5), fresh=one_set(figures(10), figures(11)))
    written, why = verdict(fresh, [WORKED])
    assert not written
    assert why == "on fresh data 11 inputs would deviate instead of 10"


DETAILS = CandidateDetails(precision=PrecisionDetails(promoted=("conv",)))
FLOATS = ({"regex": ".*", "op_config": {"compute_precision": "FLOAT"}},)
JUDGED = TriedCandidate(
    name="ranges+head",
    seconds=1.5,
    size_bytes=3,
    file=f"{FOLDER}/ranges+head.tflite",
    latency_ratio=1.01,
    latency=(Latency("board", 2e-6, 1e-6, 0.5, 0.4, 0.625, 10),),
    score=0.85,
    sets=judgement(20, 5),
    needs={"--max-size": "+9%"},
    details=DETAILS,
)
ASIDE = TriedCandidate(name="head", seconds=0.5, set_aside="the XNNPACK delegate: refused")
CANDIDATE = RepairCandidate("ranges+head", b"abc", FLOATS, DETAILS, {"alone.tflite": b"\xff"})
TRIED = [Attempt(CANDIDATE, JUDGED), Attempt(None, ASIDE), Attempt(None, ASIDE, unmade=True)]


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    StoredCandidates(tmp_path, REPAIR, resume=False).write("heads", TRIED)
    again = StoredCandidates(tmp_path, REPAIR, resume=True)
    assert again.read("heads") == TRIED
    assert again.read("ranges") is None


@pytest.mark.parametrize("damage", [b"[}", b"", b'[{"tried": {"name": "\xff"}}]', b"[{}]"])
@pytest.mark.parametrize("name", ["heads.json", "ranges+head.tflite"])
def test_a_plan_with_a_damaged_or_missing_file_was_not_tried(
    tmp_path: Path, name: str, damage: bytes
) -> None:
    StoredCandidates(tmp_path, REPAIR, resume=False).write("heads", TRIED)
    (tmp_path / FOLDER / name).write_bytes(damage)
    assert StoredCandidates(tmp_path, REPAIR, resume=True).read("heads") is None
    (tmp_path / FOLDER / name).unlink()
    assert StoredCandidates(tmp_path, REPAIR, resume=True).read("heads") is None


@pytest.mark.parametrize("outside", ["../esc", "/etc/passwd", "a/b", "repair.json", ".hidden", ""])
def test_names_of_a_folder_of_a_stranger_stay_in_it(tmp_path: Path, outside: str) -> None:
    store = StoredCandidates(tmp_path, REPAIR, resume=False)
    beside = replace(CANDIDATE, files={outside: b"x"})
    store.write("heads", [Attempt(beside, JUDGED)])
    assert store.read("heads") is None
    store.write("heads", [Attempt(CANDIDATE, structs.replace(JUDGED, file=outside))])
    assert store.read("heads") is None


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    StoredCandidates(elsewhere, REPAIR, resume=False).write("heads", TRIED)
    folder.mkdir()
    (folder / FOLDER).symlink_to(elsewhere / FOLDER)
    with pytest.raises(UserError, match="outside of it"):
        StoredCandidates(folder, REPAIR, resume=True)


OTHER = structs.replace(REPAIR, request=structs.replace(REPAIR.request, method="ranges"))


@pytest.mark.parametrize(
    ("begun", "name", "content", "about", "said"),
    [
        (False, "pair.toml", b"", REPAIR, "holds no repair to go on with"),
        (
            True,
            "notes",
            b"",
            OTHER,
            "begun with --method auto, not ranges: repeat the command that began it",
        ),
        (
            True,
            "notes",
            b"",
            structs.replace(REPAIR, request=structs.replace(REPAIR.request, rounds=2)),
            "begun without --rounds, not with --rounds 2: repeat the command",
        ),
        (True, f"{FOLDER}/about.json", b"{", REPAIR, r"about\.json is damaged"),
    ],
    ids=["something else", "another repair", "other rounds", "damaged"],
)
def test_what_is_no_repair_to_go_on_with_is_left_alone(
    tmp_path: Path, begun: bool, name: str, content: bytes, about: Any, said: str
) -> None:
    if begun:
        StoredCandidates(tmp_path, REPAIR, resume=False)
    (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=said):
        StoredCandidates(tmp_path, about, resume=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_removed_leaves_nothing_but_what_others_wrote(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for left in (set(), {"notes.txt", "candidates/mine.json"}):
        for name in left:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text("mine")
        with FolderKind("repair").take(out, lambda: None):
            stored = StoredCandidates(out, REPAIR, resume=False)
            stored.write("heads", TRIED)
            stored.remove()
        found = {one.relative_to(out).as_posix() for one in out.rglob("*") if one.is_file()}
        assert found - {"contents.jsonl"} == left
        assert out.exists() == bool(left)


def test_a_folder_of_candidates_that_a_kill_has_left_empty_goes(tmp_path: Path) -> None:
    with FolderKind("repair").take(tmp_path, lambda: None):
        stored = StoredCandidates(tmp_path, REPAIR, resume=False)
        stored.remove()
        (tmp_path / FOLDER).mkdir()
        stored.remove()
        assert not (tmp_path / FOLDER).exists()


def repair(out: Path) -> None:
    """Do what a repair does that goes on, and writes its model."""
    with FolderKind("repair").take(out, lambda: None):
        stored = StoredCandidates(out, REPAIR, resume=True)
        for plan in ("heads", "ranges"):
            if stored.read(plan) is None:
                stored.write(plan, TRIED)
        write_repaired(out, CANDIDATE)
        write_document(out, repair_by_shifts())


@pytest.mark.slow
def test_a_repair_that_is_killed_costs_nothing_of_the_users_and_is_gone_on_with(
    tmp_path: Path,
) -> None:
    def prepare(folder: Path) -> Callable[[], None]:
        repair(folder / "out")
        (folder / "out" / FOLDER / "ranges.json").unlink()
        put_notes(folder / "out")
        return lambda: repair(folder / "out")

    def next_command(folder: Path, _: Kill) -> None:
        require_notes(folder / "out")
        repair(folder / "out")
        require_notes(folder / "out")
        left = {one.name for one in (folder / "out").rglob("*") if one.is_file()}
        assert {"repair.json", "ranges.json", "alone.tflite"} <= left
        assert not [name for name in left if name.startswith(".")]

    assert killed_at_each(tmp_path, prepare, next_command) > 10


EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


EVIL = "\x7f\x9b31m\u202egnp"


@pytest.mark.parametrize("name", ["plain", 'a "quoted" näme \\ 服', f"one that commands {EVIL}"])
def test_the_folder_of_a_repaired_model_is_a_pair(name: str, tmp_path: Path) -> None:
    pair = load_pair(EXAMPLE, Settings(name=name, outputs="probabilities"))
    shutil.copy(pair.compressed, tmp_path / MODEL)

    write_pair(tmp_path, pair, pair.seeds)

    assert not set(EVIL[:2] + EVIL[5]) & set((tmp_path / "pair.toml").read_text(encoding="utf-8"))
    found = load_pair(tmp_path)
    assert found == replace(pair, name=f"{name}-repaired", compressed=tmp_path / MODEL)
    assert found.fingerprint() == pair.fingerprint()


DEVICES_OWN = """
[device.preprocess]
scale = 1.0
channels = "bgr"

[device.task]
outputs = "logits"
"""


def test_it_keeps_what_the_device_has_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    shutil.copytree(EXAMPLE, folder)
    described = (EXAMPLE / "pair.toml").read_text()
    (folder / "pair.toml").write_text(f"{described}\n{DEVICES_OWN}")
    pair = load_pair(folder)
    shutil.copy(pair.compressed, tmp_path / MODEL)
    write_pair(tmp_path, pair, pair.seeds)
    found = load_pair(tmp_path)
    assert found.interface == pair.interface
    assert found.fingerprint() == pair.fingerprint() != load_pair(EXAMPLE).fingerprint()


def test_it_is_one_wherever_its_models_were_named_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = load_pair(EXAMPLE)
    assert pair.original is not None
    folder, out = tmp_path / "here", tmp_path / "out"
    folder.mkdir()
    shutil.copy(pair.original, folder / "float.tflite")
    shutil.copy(pair.seeds, folder / "seeds.npz")
    monkeypatch.chdir(folder)
    named = replace(pair, original="float.tflite", seeds=Path("seeds.npz"))

    write_pair(out, named, named.seeds)
    shutil.copy(pair.compressed, out / MODEL)
    monkeypatch.chdir(tmp_path)

    found = load_pair(out)
    assert found.original == str(folder / "float.tflite")
    assert found.seeds == folder / "seeds.npz"
    assert found.fingerprint() == pair.fingerprint()


def test_a_callable_stays_as_it_is_and_its_file_is_found(tmp_path: Path) -> None:
    pair = load_pair(EXAMPLE)
    (tmp_path / MODEL).touch()
    for typed, written in (
        ("package.module:predict", "package.module:predict"),
        ("model.py:predict", f"{Path.cwd() / 'model.py'}:predict"),
    ):
        write_pair(tmp_path, replace(pair, original=typed), pair.seeds)
        assert read_settings(tmp_path / "pair.toml").original == written


def test_what_belongs_beside_a_model_is_written_with_it(tmp_path: Path) -> None:
    files = {"shifts.tflite": b"shifts"}
    write_repaired(tmp_path / "out", RepairCandidate("shifts", b"model", None, files=files))
    write_repaired(tmp_path / "out", RepairCandidate("head", b"other", ({"regex": ".*"},)))
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found.keys() == {MODEL, RECIPE, "shifts.tflite"}
    assert (found[MODEL], found["shifts.tflite"]) == (b"other", b"shifts")
