"""A run in parts, as users make it: searched, merged, gone on with, and shown as any run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, refused
from merged_parts import about_of, copied, note_about
from run_content import content_differences, run_content
from small_pairs import write_two_inputs_pair

pytestmark = pytest.mark.slow

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
def in_parts(tmp_path_factory: pytest.TempPathFactory) -> InParts:
    folder = tmp_path_factory.mktemp("parts")
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(folder / "test.npz", images=arrays["images"][-3:], labels=arrays["labels"][-3:])
    (folder / "ids.txt").write_text("# of the second host\n1:3\n4  # the last\n")
    search = ("search", EXAMPLE, *LIMITS, *OF_NO_SEED, "--test", folder / "test.npz")
    made = InParts(folder, search)
    given = ("--screening", made.run("screening"), "--seed-ids")
    asked: dict[str, tuple[str | Path, ...]] = {
        "whole": (),
        "screening": ("--screen-only",),
        "part-1": (*given, "0,3"),
        "part-2": (*given, folder / "ids.txt"),
    }
    for name, options in asked.items():
        completed(*search, *options, "--out", made.run(name))
    said = completed("merge", *made.parts, "--out", made.run("merged"))
    assert "merged from parts that leave something to do" in " ".join(said.out.split())
    return made


def test_a_screening_needs_no_gate(tmp_path: Path) -> None:
    few = ("--first", "2", "--max-queries", "20", "--shrink", "0")
    completed("search", EXAMPLE, *few, "--screen-only", "--out", tmp_path / "screening")


def test_parts_are_runs_of_their_own_seeds(in_parts: InParts) -> None:
    for part, ids, seeds in zip(in_parts.parts, ("0,3", "1:3,4"), (2, 3), strict=True):
        document = document_of(part)
        assert document["plan"]["seed_ids"] == ids
        assert document["totals"]["seeds"] == seeds
        assert document["stopped_by"] is None
        assert "coverage" not in document
        completed("report", part)
    assert document_of(in_parts.run("screening"))["stopped_by"] == "screening"
    assert "its seeds were evaluated" in call_here("report", in_parts.run("screening")).out


def test_what_belongs_to_no_seed_is_measured_when_the_merged_run_is_gone_on_with(
    in_parts: InParts, tmp_path: Path
) -> None:
    merged, whole = copied(in_parts.run("merged"), tmp_path / "run"), in_parts.run("whole")
    assert document_of(merged)["stopped_by"] == "merge"
    for key in ("findings", "deviating_seeds"):
        sha256s = [[one["sha256"] for one in document_of(run)[key]] for run in (merged, whole)]
        assert sha256s[0] == sha256s[1]
    assert document_of(whole)["findings"]

    completed(*in_parts.search, "--out", merged, "--resume")
    assert content_differences(run_content(merged), run_content(whole)) == []
    assert document_of(merged)["coverage"]
    assert document_of(merged)["unmutated"]["test"]["inputs"] == 3

    # Merged with another run that has them, it has the held-out inputs once, and no coverage.
    completed("merge", merged, whole, "--out", tmp_path / "again")
    left = {f"{part}.{key}" for part in ("about", "document") for key in ("coverage", "stopped_by")}
    again = run_content(tmp_path / "again")
    assert set(content_differences(again, run_content(whole))) == left
    assert again["document"]["stopped_by"] == "merge"


def test_a_merged_run_is_shown_replayed_and_explained_as_any(
    in_parts: InParts, tmp_path: Path
) -> None:
    merged = copied(in_parts.run("merged"), tmp_path / "run")
    completed("report", merged, "--html")
    page = (merged / "report.html").read_text()
    assert "it was merged from parts" in page

    found = document_of(merged)["findings"]
    assert len(found) > 1
    completed("replay", merged, "--out", tmp_path / "again", code=1)
    again = document_of(tmp_path / "again")
    assert [one["sha256"] for one in again["findings"]] == [one["sha256"] for one in found]
    assert again["replay"]["mended"] == []

    explained_id = str(found[0]["seed_id"])
    completed("explain", merged, explained_id)
    assert document_of(merged, "explain.json")["findings"].keys() == {explained_id}
    assert f"{tmp_path / 'again'} is a replay: merge takes runs" in refused(
        "merge", tmp_path / "again", in_parts.parts[0], "--out", tmp_path / "no"
    )


def test_a_run_of_some_parts_is_gone_on_with_as_they_are(in_parts: InParts, tmp_path: Path) -> None:
    run = tmp_path / "run"
    completed("merge", in_parts.parts[0], "--out", run)
    given = ("--screening", in_parts.run("screening"), "--seed-ids")
    completed(*in_parts.search, *given, "0,3", "--out", run, "--resume")
    assert content_differences(run_content(run), run_content(in_parts.parts[0])) == []
    for options, words in (
        ((), "--seed-ids 0,3, not without --seed-ids"),
        ((*given, "0:3"), "--seed-ids 0,3, not 0:3"),
        (("--seed-ids", "0,3", "--find", "kernel"), "--find any, not kernel"),
    ):
        assert words in refused(*in_parts.search, *options, "--out", run, "--resume")


def test_another_host_is_refused_unless_it_is_allowed(in_parts: InParts, tmp_path: Path) -> None:
    one, other = in_parts.parts
    elsewhere = copied(one, tmp_path / "elsewhere")
    host = {**about_of(one)["host"], "machine": "another"}
    note_about(elsewhere, host=host)
    given = ("--screening", in_parts.run("screening"), "--seed-ids", "0,3")
    for command in (
        ("merge", elsewhere, other, "--out", tmp_path / "merged"),
        (*in_parts.search, *given, "--out", elsewhere, "--resume"),
    ):
        said = refused(*command)
        assert "machine" in said
        assert said.endswith("or add --allow-other-host, and the run says so")
        completed(*command, "--allow-other-host")
        (line,) = [
            line
            for line in document_of(Path(command[command.index("--out") + 1]))["warnings"]
            if "several hosts worked on this run" in line
        ]
        assert "differ in machine (" in line


@pytest.fixture
def named_seeds(tmp_path: Path) -> Path:
    """The first seeds of the example as a folder of files with names."""
    folder = tmp_path / "seeds"
    folder.mkdir()
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        for name, image in zip(("boot", "bag", "coat"), arrays["images"], strict=False):
            assert cv2.imwrite(str(folder / f"{name}.png"), image)
    return folder


def assert_merged_is_whole(folder: Path, *search: str | Path) -> dict[str, Any]:
    """Search three seeds as a whole and in two parts; return the document of the merged run."""
    for name, options in (
        ("whole", ()),
        ("one", ("--seed-ids", "0,2")),
        ("other", ("--seed-ids", "1")),
    ):
        completed("search", *search, *options, "--out", folder / name)
    completed("merge", folder / "other", folder / "one", "--out", folder / "merged")
    merged = run_content(folder / "merged")
    assert content_differences(merged, run_content(folder / "whole")) == []
    document: dict[str, Any] = merged["document"]
    assert document["findings"]
    return document


def test_seeds_keep_their_names(named_seeds: Path, tmp_path: Path) -> None:
    search = (EXAMPLE, "--seeds", named_seeds, "--find", "compression", "--shrink", "3")
    document = assert_merged_is_whole(tmp_path, *search, "--fail-on", "none")
    names = {one["seed_id"]: one["seed_name"] for one in document["findings"]}
    assert names.items() <= dict(enumerate(("bag.png", "boot.png", "coat.png"))).items()


def test_what_models_take_beside_the_seeds_is_merged(tmp_path: Path) -> None:
    pair = write_two_inputs_pair(tmp_path / "pair")
    search = (pair, "--first", "3", "--find", "compression", "--max-queries", "300")
    document = assert_merged_is_whole(
        tmp_path, *search, "--shrink", "5", "--within", "none", "--fail-on", "none"
    )
    seed_id = document["findings"][0]["seed_id"]
    assert (tmp_path / "merged" / "seeds" / f"{seed_id:06d}.fixed.npz").is_file()
    completed("replay", tmp_path / "merged", "--out", tmp_path / "again", code=1)

    part = copied(tmp_path / "whole", tmp_path / "damaged")
    (part / "seeds" / f"{seed_id:06d}.fixed.npz").unlink()
    assert f"{seed_id:06d}.fixed.npz is gone, or not what the run stored" in refused(
        "merge", part, "--out", tmp_path / "no"
    )
