"""A run directory: begun, gone on with, replaced, and the inputs and numbers that it stores."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from math import inf, isnan, nan
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from documents import run_pair
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import FOLDER, LIST, begin_list, list_as
from edgeflare.record.json_file import MOST, json_bytes, parse_json
from edgeflare.run.begin_or_resume import resume_run
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import run_domain
from edgeflare.run.run_journal import RunJournal
from edgeflare_operators.operator_registry import Image
from laboratory import Laboratory

images = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 4])).flatmap(
    lambda shape: arrays(np.uint8, shape)
)


@given(image=images)
def test_a_stored_image_comes_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, image: Image
) -> None:
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    stored = directory.store_input("findings", 12, image, ImageDomain())
    assert np.array_equal(directory.load_input(stored.path), image)
    data = (directory.path / stored.path).read_bytes()
    assert stored.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("content", [None, b"", b"no image", b"\x89PNG\r\n\x1a\n cut"])
def test_opencv_says_nothing_of_an_image_that_is_gone_or_damaged(
    tmp_path: Path, content: bytes | None, capfd: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "seed.png").write_bytes(content)
    with pytest.raises(InfrastructureError, match=r"seed\.png is gone or damaged"):
        RunDirectory(tmp_path).load_input("seed.png")
    assert capfd.readouterr() == ("", "")


def claim(path: Path, *, overwrite: bool = False) -> RunDirectory:
    """Claim a run directory, and let others work on it."""
    directory, lock = RunDirectory.claim(path, overwrite=overwrite)
    os.close(lock)
    return directory


def test_a_run_is_replaced_only_if_told_to_and_nothing_else_is_removed(tmp_path: Path) -> None:
    directory = claim(tmp_path / "run")
    write_atomically(directory.document, b"{}")
    directory.store_input("findings", 1, np.zeros((4, 4, 1), np.uint8), ImageDomain())
    for made in ("report.html", "finding-12.zip"):
        write_atomically(directory.path / made, b"")
    for journal in ("run.db", "run.db-journal"):
        (directory.path / journal).touch()
    (directory.path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"--resume.*--overwrite"):
        claim(tmp_path / "run")
    claim(tmp_path / "run", overwrite=True)
    assert {path.name for path in directory.path.iterdir()} == {"notes.txt", "contents.jsonl"}


@pytest.mark.parametrize("name", ["thesis.txt", "run.db"])
def test_what_is_no_run_is_never_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    for place, said in ((tmp_path, "neither empty nor a run"), (tmp_path / name, "is a file")):
        with pytest.raises(UserError, match=said):
            claim(place, overwrite=True)
    assert (tmp_path / name).read_text() == "precious"


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "name",
    ["{outside}/secret.png", "../secret.png", "findings/../../secret.png", "link.png",
     "folder/secret.png", "circle", "", "a\0b", "x" * 5000],
)  # fmt: skip
def test_what_lies_outside_is_neither_read_nor_written(tmp_path: Path, name: str) -> None:
    image = np.full((4, 4, 1), 7, np.uint8)
    RunDirectory(tmp_path).store_input(".", 1, image, ImageDomain())
    secret = (tmp_path / "000001.png").rename(tmp_path / "secret.png")
    directory = RunDirectory(tmp_path / "run")
    directory.path.mkdir()
    (directory.path / "link.png").symlink_to(secret)
    (directory.path / "folder").symlink_to(tmp_path)
    (directory.path / "circle").symlink_to("circle")
    with pytest.raises(EdgeFlareError):
        directory.load_input(name.format(outside=tmp_path))
    with pytest.raises(UserError, match="outside of it"):
        directory.store_input("folder", 2, image, ImageDomain())
    assert not (tmp_path / "000002.png").exists()


def test_a_link_within_the_run_directory_is_followed(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    image = np.full((4, 4, 1), 7, np.uint8)
    stored = directory.store_input("findings", 1, image, ImageDomain())
    (tmp_path / "again.png").symlink_to(tmp_path / stored.path)
    assert np.array_equal(directory.load_input("again.png"), image)


def test_a_pipe_is_refused_and_a_huge_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(UserError, match="not a regular file"):
        RunDirectory(tmp_path).load_input("pipe.png")
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UserError, match="1,099,511,627,776 bytes"):
        RunDirectory(tmp_path).load_input("huge.png")


def test_fixed_inputs_are_kept_whatever_they_are_called(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    for seed_id in (4, 7):
        directory.store_fixed(seed_id, {"file": np.full((2, 3), seed_id), "x": np.ones(1)})
    loaded = directory.load_fixed((7, 4), ("file", "x"))
    assert loaded["file"].shape == (2, 2, 3)
    assert loaded["file"][:, 0, 0].tolist() == [7, 4]
    with pytest.raises(UserError, match="is gone or damaged: it held x of that seed"):
        directory.load_fixed((5,), ("x",))


@pytest.mark.slow
def test_a_run_that_is_under_way_is_neither_gone_on_with_nor_replaced(
    laboratory: Laboratory,
) -> None:
    run = laboratory.folder / "run"
    laboratory.run("run", stop_after=300)
    before = sorted(run.rglob("*"))
    journal = RunJournal.reopen(run / "run.db")
    with pytest.raises(UserError, match="is being worked on by another process"):
        laboratory.run("run", resume=True)
    with pytest.raises(UserError, match="is being worked on by another process"):
        claim(run, overwrite=True)
    assert (run / "run.json").is_file()
    assert sorted(path for path in run.rglob("*") if "-" not in path.name) == [
        path for path in before if "-" not in path.name
    ]
    journal.close()
    laboratory.run("run", resume=True)
    assert laboratory.stopped is None


@pytest.mark.parametrize("header", [{"pair": {}}, {"pair": 3}, {"pair": {"fingerprint": "x"}}])
def test_a_header_that_no_run_wrote_is_damage_and_the_run_is_unlocked(
    tmp_path: Path, header: dict[str, Any]
) -> None:
    whole: dict[str, Any] = {
        "version": "0", "plan": {}, "devices": [], "arms": {}, "classes": [], "labels": None,
        "seeds": 1,
    }  # fmt: skip
    RunJournal.create(tmp_path / "run.db", {**whole, **header}).close()
    ours: Any = None  # has no pair to compare with, once theirs is one
    with (
        patch("edgeflare.run.run_header.Plan.from_json", return_value=None),
        pytest.raises(UserError, match=r"run\.db is damaged"),
    ):
        resume_run(tmp_path, ours)
    RunJournal.reopen(tmp_path / "run.db").close()


@pytest.fixture
def of_any_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs of all headers be the same."""
    for name in ("RunHeader", "require_same", "note_other_host", "note_other_devices"):
        monkeypatch.setattr(f"edgeflare.run.begin_or_resume.{name}", MagicMock())


def begun(path: Path) -> RunDirectory:
    directory, lock = RunDirectory.claim(path, overwrite=False)
    RunJournal.create(directory.journal, {"seeds": 1}, lock=lock).close()
    write_atomically(directory.document, b"{}")
    return directory


@pytest.mark.usefixtures("of_any_header")
def test_a_document_that_others_have_changed_is_refused_before_the_run_goes_on(
    tmp_path: Path,
) -> None:
    directory = begun(tmp_path)
    survey, ours = tmp_path / "survey.json", MagicMock()
    survey.write_text("the user's")
    with pytest.raises(UserError, match=r"survey\.json is not as edgeflare left it"):
        resume_run(tmp_path, ours, documents=["survey.json"])
    with closing(RunJournal.open(directory.journal)) as journal:
        assert "stopped_by" not in journal.about()
    assert directory.document.exists()
    survey.unlink()
    resume_run(tmp_path, ours, documents=["survey.json"])[1].close()
    assert not directory.document.exists()


@pytest.mark.usefixtures("of_any_header")
@pytest.mark.parametrize("nested", [False, True])
def test_a_run_whose_list_is_lost_is_gone_on_with_without_its_old_document(
    tmp_path: Path, *, nested: bool
) -> None:
    begin_list(tmp_path, "matrix of kernel sets")
    list_as(tmp_path, "builtin", FOLDER)
    if not nested:
        (tmp_path / LIST).unlink()
    directory = begun(tmp_path / "builtin")
    (directory.path / LIST).unlink()
    resume_run(directory.path, MagicMock())[1].close()
    assert not directory.document.exists()
    for content in (b"{}", b"{ }"):
        write_atomically(directory.document, content)


def test_settings_of_the_pair_are_those_of_the_domain() -> None:
    settings = {"dtype": "int16", "lowest": -5, "highest": 9}
    space = run_domain(run_pair(domain="array", domain_settings=settings)).space
    assert (space.dtype, space.lowest, space.highest) == ("int16", -5, 9)
    audio = run_domain(run_pair(domain="audio", domain_settings={"sample_rate": 8_000}))
    assert isinstance(audio, AudioDomain)
    assert audio.sample_rate == 8_000
    assert run_domain(run_pair()).name == "image"


def test_settings_that_do_not_fit_are_refused_in_a_line() -> None:
    with pytest.raises(UserError, match="unknown key colour") as caught:
        run_domain(run_pair(domain="audio", domain_settings={"colour": "red"}))
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="unknown domain 'smell'"):
        run_domain(run_pair(domain="smell"))


NUMBERS = st.floats() | st.integers()


def read_again(document: Any) -> Any:
    return parse_json(json_bytes(document), Path("document.json"))


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.text(st.characters(codec="ascii")), NUMBERS)))
def test_numbers_come_back_within_what_json_keeps(rows: list[dict[str, float]]) -> None:
    for row, again in zip(rows, read_again({"rows": rows})["rows"], strict=True):
        for key, value in row.items():
            wanted = None if isnan(value) else min(max(value, -MOST), MOST)
            assert again[key] == wanted


@pytest.mark.parametrize(
    ("value", "kept"), [(nan, None), (inf, MOST), (-inf, -MOST), (1e300, MOST), (0.5, 0.5)]
)
def test_what_is_not_finite_stays_json(value: float, kept: float | None) -> None:
    assert read_again({"a": [{"b": (value, "1e+99")}]}) == {"a": [{"b": [kept, "1e+99"]}]}
