"""A run in parts, as users make it: searched, merged, gone on with, and shown as any run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from merged_parts import about_of, copied, note_about
from run_content import content_differences, run_content
from small_pairs import write_two_inputs_pair

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

LIMITS = (
    *("--first", "5", "--max-queries", "100", "--shrink", "5", "--within", "none"),
    *("--fail-on", "none"),
)
OF_NO_SEED = ("--coverage", "0.25,0.5")


@dataclass(frozen=True)
class InParts:
    """A search of the example: its screening, parts, the two merged, and the whole."""

    folder: Path
    search: tuple[str | Path, ...]

    @property
    def parts(self) -> tuple[Path, Path]:
        return self.folder / "part-1", self.folder / "part-2"

    def run(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def in_parts(call: Call, example: Path, tmp_path_factory: pytest.TempPathFactory) -> InParts:
    folder = tmp_path_factory.mktemp("parts")
    with np.load(example / "seeds.npz") as arrays:
        np.savez(folder / "test.npz", images=arrays["images"][-3:], labels=arrays["labels"][-3:])
    (folder / "ids.txt").write_text("# of the second host\n1:3\n4  # the last\n")
    search = ("search", example, *LIMITS, *OF_NO_SEED, "--test", folder / "test.npz")
    made = InParts(folder, search)
    given = ("--screening", made.run("screening"), "--seed-ids")
    asked: dict[str, tuple[str | Path, ...]] = {
        "whole": (),
        "screening": ("--screen-only",),
        "part-1": (*given, "0,3"),
        "part-2": (*given, folder / "ids.txt"),
    }
    for name, options in asked.items():
        said = call(*search, *options, "--out", made.run(name))
        assert said.code == 0, said.err
    said = call("merge", *made.parts, "--out", made.run("merged"))
    assert said.code == 0, said.err
    assert "merged from parts that leave something to do" in said.out
    return made


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return document


def test_a_screening_needs_no_gate(call: Call, example: Path, tmp_path: Path) -> None:
    few = ("--first", "2", "--max-queries", "20")
    said = call("search", example, *few, "--screen-only", "--out", tmp_path / "screening")
    assert said.code == 0, said.err


def test_a_run_that_is_there_is_not_merged_over(in_parts: InParts, call: Call) -> None:
    line = call("merge", *in_parts.parts, "--out", in_parts.run("whole")).complaint()
    assert "--overwrite" in line
    assert "--resume" not in line


def test_parts_are_runs_of_their_own_seeds(in_parts: InParts, call: Call) -> None:
    for part, ids, seeds in zip(in_parts.parts, ("0,3", "1:3,4"), (2, 3), strict=True):
        document = document_of(part)
        assert document["plan"]["seed_ids"] == ids
        assert document["totals"]["seeds"] == seeds
        assert document["stopped_by"] is None
        assert "coverage" not in document
        assert call("report", part).code == 0
    assert document_of(in_parts.run("screening"))["stopped_by"] == "screening"
    assert "only the seeds were evaluated" in call("report", in_parts.run("screening")).out


def test_what_belongs_to_no_seed_is_measured_when_the_merged_run_is_gone_on_with(
    in_parts: InParts, call: Call, tmp_path: Path
) -> None:
    merged, whole = copied(in_parts.run("merged"), tmp_path / "run"), in_parts.run("whole")
    assert document_of(merged)["stopped_by"] == "merge"
    for key in ("findings", "deviating_seeds"):
        sha256s = [[one["sha256"] for one in document_of(run)[key]] for run in (merged, whole)]
        assert sha256s[0] == sha256s[1]
    assert document_of(whole)["findings"]

    said = call(*in_parts.search, "--out", merged, "--resume")
    assert said.code == 0, said.err
    assert content_differences(run_content(merged), run_content(whole)) == []
    assert document_of(merged)["coverage"]
    assert document_of(merged)["unmutated"]["test"]["images"] == 3

    # Merged with another run that has them, it has the held-out inputs once, and no coverage.
    assert call("merge", merged, whole, "--out", tmp_path / "again").code == 0
    left = {f"{part}.{key}" for part in ("about", "document") for key in ("coverage", "stopped_by")}
    again = run_content(tmp_path / "again")
    assert set(content_differences(again, run_content(whole))) == left
    assert again["document"]["stopped_by"] == "merge"


def test_a_merged_run_is_shown_replayed_and_explained_as_any(
    in_parts: InParts, call: Call, tmp_path: Path
) -> None:
    merged = copied(in_parts.run("merged"), tmp_path / "run")
    said = call("report", merged, "--html")
    assert said.code == 0, said.err
    page = (merged / "report.html").read_text()
    assert "The run was merged from parts" in page

    found = document_of(merged)["findings"]
    assert len(found) > 1
    assert call("replay", merged, "--out", tmp_path / "again").code == 1
    again = document_of(tmp_path / "again")
    assert [one["sha256"] for one in again["findings"]] == [one["sha256"] for one in found]
    assert again["replay"]["mended"] == []

    explained_id = str(found[0]["seed_id"])
    said = call("explain", merged, explained_id)
    assert said.code == 0, said.err
    assert json.loads((merged / "explain.json").read_bytes())["findings"].keys() == {explained_id}
    said = call("merge", tmp_path / "again", in_parts.parts[0], "--out", tmp_path / "no")
    assert said.code == 2
    assert f"{tmp_path / 'again'} is a replay: merge takes runs" in said.complaint()


def test_a_run_of_some_parts_is_gone_on_with_as_they_are(
    in_parts: InParts, call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert call("merge", in_parts.parts[0], "--out", run).code == 0
    given = ("--screening", in_parts.run("screening"), "--seed-ids")
    said = call(*in_parts.search, *given, "0,3", "--out", run, "--resume")
    assert said.code == 0, said.err
    assert content_differences(run_content(run), run_content(in_parts.parts[0])) == []
    for options, words in (
        ((), "--seed-ids 0,3, not none"),
        ((*given, "0:3"), "--seed-ids 0,3, not 0:3"),
        (("--seed-ids", "0,3", "--find", "kernel"), "--find any, not kernel"),
    ):
        said = call(*in_parts.search, *options, "--out", run, "--resume")
        assert said.code == 2
        assert words in said.complaint()


BAD_SEARCHES: dict[str, tuple[str, tuple[str, ...]]] = {
    "backwards": ("--seed-ids 5:3", ("--seed-ids '5:3': expected ids and ranges",)),
    "no ids": ("--seed-ids {f}/empty.txt", ("names no seed",)),
    "no file": ("--seed-ids {f}/absent.txt", ("or a file of them (No such file",)),
    "beyond": (
        "--seed-ids 3:9 --strategy random",
        ("--seed-ids names seed 5, and --first 5 takes 0:5: name some of these",),
    ),
    "total": (
        "--seed-ids 0:2 --strategy random --total-queries 100",
        ("--total-queries is shared out among all seeds", "--max-queries"),
    ),
    "all kernel sets": (
        "--seed-ids 0:2 --strategy random --device emulated-all",
        ("--seed-ids, --screening and --screen-only are for one run", "NAME/builtin"),
    ),
    "all, screened": ("--screen-only --device emulated-all", ("are for one run",)),
    "no screening": (
        "--seed-ids 0:2",
        ("the strategy boundary reads how the other seeds were answered", "--screen-only"),
    ),
    "donor": ("--seed-ids 0:2 --strategy donor --find kernel", ("the strategy donor reads",)),
    "screening of all": ("--screening {s}", ("--screening is for a search of some seeds",)),
    "other find": (
        "--seed-ids 0:2 --screening {s} --find kernel --strategy donor",
        ("of another option than this search, with --find any there and kernel here",),
    ),
    "other device": (
        "--seed-ids 0:2 --screening {s} --device emulated-reference",
        ("of another device than this search, with kernels builtin there and reference here",),
    ),
    "a part as screening": (
        "--seed-ids 0:2 --screening {f}/part-1",
        ("part-1 has answers to 2 of 5 seeds: finish it first",),
    ),
    "absent screening": ("--seed-ids 0:2 --screening {f}/no", ("there is no run directory",)),
}


@pytest.mark.parametrize("mistake", BAD_SEARCHES)
def test_a_part_that_cannot_be_searched_is_refused_in_one_line(
    in_parts: InParts, call: Call, example: Path, tmp_path: Path, mistake: str
) -> None:
    text, words = BAD_SEARCHES[mistake]
    (in_parts.folder / "empty.txt").write_text("# none\n")
    options = text.format(f=in_parts.folder, s=in_parts.run("screening")).split()
    said = call("search", example, *LIMITS, *options, "--out", tmp_path / "run")
    assert said.code == 2
    assert said.out == ""
    assert all(word in said.complaint() for word in words), said.complaint()
    assert not (tmp_path / "run").exists()


def test_a_screening_of_another_pair_is_refused(
    in_parts: InParts, call: Call, mistakes: Path, tmp_path: Path
) -> None:
    given = ("--seed-ids", "0", "--screening", in_parts.run("screening"))
    said = call("search", mistakes / "other", *LIMITS, *given, "--out", tmp_path / "run")
    assert said.code == 2
    assert "is of another pair than this search" in said.complaint()


def test_runs_that_are_not_to_be_merged_are_refused_in_one_line(
    in_parts: InParts, call: Call, example: Path, tmp_path: Path
) -> None:
    one, other = in_parts.parts
    (tmp_path / "conformed").mkdir()
    (tmp_path / "conformed" / "conform.db").touch()
    changed = copied(one, tmp_path / "changed")
    note_about(changed, plan={**about_of(one)["plan"], "rng_seed": 7})
    survey = copied(one, tmp_path / "survey")
    note_about(survey, survey={"conditions": []})
    before = sorted(path.name for path in tmp_path.iterdir())
    for runs, out, words in (
        ((one, one), "out", f"{one} is named twice"),
        ((one, other), one, f"{one} is one of the runs that are merged"),
        ((one, changed), "out", "with --rng-seed "),
        ((one, tmp_path / "conformed"), "out", "holds a conformance run"),
        ((one, survey), "out", f"{survey} is a survey: merge takes runs of `edgeflare search`"),
        ((one, example), "out", "is no run directory"),
        ((one, other), in_parts.run("merged"), "holds a run already"),
        ((), "out", "Missing argument"),
    ):
        said = call("merge", *runs, "--out", tmp_path / out)
        assert said.code == 2
        assert words in said.complaint(), said.complaint()
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_another_host_is_refused_unless_it_is_allowed(
    in_parts: InParts, call: Call, tmp_path: Path
) -> None:
    one, other = in_parts.parts
    elsewhere = copied(one, tmp_path / "elsewhere")
    host = {**about_of(one)["host"], "machine": "another"}
    note_about(elsewhere, host=host)
    given = ("--screening", in_parts.run("screening"), "--seed-ids", "0,3")
    for command in (
        ("merge", elsewhere, other, "--out", tmp_path / "merged"),
        (*in_parts.search, *given, "--out", elsewhere, "--resume"),
    ):
        said = call(*command)
        assert said.code == 2
        assert "machine" in said.complaint()
        assert said.complaint().endswith("or add --allow-other-host, and the run says so")
        said = call(*command, "--allow-other-host")
        assert said.code == 0, said.err
        (line,) = [
            line
            for line in document_of(Path(command[command.index("--out") + 1]))["warnings"]
            if "several hosts worked on this run" in line
        ]
        assert "differ in machine (" in line


@pytest.fixture
def named_seeds(example: Path, tmp_path: Path) -> Path:
    """The first seeds of the example as a folder of files with names."""
    folder = tmp_path / "seeds"
    folder.mkdir()
    with np.load(example / "seeds.npz") as arrays:
        for name, image in zip(("boot", "bag", "coat"), arrays["images"], strict=False):
            assert cv2.imwrite(str(folder / f"{name}.png"), image)
    return folder


def assert_merged_is_whole(call: Call, folder: Path, *search: str | Path) -> dict[str, Any]:
    """Search three seeds as a whole and in two parts; return the document of the merged run."""
    for name, options in (
        ("whole", ()),
        ("one", ("--seed-ids", "0,2")),
        ("other", ("--seed-ids", "1")),
    ):
        said = call("search", *search, *options, "--out", folder / name)
        assert said.code == 0, said.err
    assert call("merge", folder / "other", folder / "one", "--out", folder / "merged").code == 0
    merged = run_content(folder / "merged")
    assert content_differences(merged, run_content(folder / "whole")) == []
    document: dict[str, Any] = merged["document"]
    assert document["findings"]
    return document


def test_seeds_keep_their_names(
    call: Call, example: Path, named_seeds: Path, tmp_path: Path
) -> None:
    search = (example, "--seeds", named_seeds, "--find", "compression", "--shrink", "3")
    document = assert_merged_is_whole(call, tmp_path, *search, "--fail-on", "none")
    names = {one["seed_id"]: one["seed_name"] for one in document["findings"]}
    assert names.items() <= dict(enumerate(("bag.png", "boot.png", "coat.png"))).items()


def test_what_models_take_beside_the_seeds_is_merged(call: Call, tmp_path: Path) -> None:
    pair = write_two_inputs_pair(tmp_path / "pair")
    search = (pair, "--first", "3", "--find", "compression", "--max-queries", "300")
    document = assert_merged_is_whole(
        call, tmp_path, *search, "--shrink", "5", "--within", "none", "--fail-on", "none"
    )
    seed_id = document["findings"][0]["seed_id"]
    assert (tmp_path / "merged" / "seeds" / f"{seed_id:06d}.fixed.npz").is_file()
    assert call("replay", tmp_path / "merged", "--out", tmp_path / "again").code == 1

    part = copied(tmp_path / "whole", tmp_path / "damaged")
    (part / "seeds" / f"{seed_id:06d}.fixed.npz").unlink()
    said = call("merge", part, "--out", tmp_path / "no")
    assert said.code == 2
    assert f"{seed_id:06d}.fixed.npz is gone, or not what the run stored" in said.complaint()
