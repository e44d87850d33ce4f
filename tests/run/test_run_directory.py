from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory
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


def test_a_damaged_image_is_an_infrastructure_error(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    stored = directory.store_input("findings", 1, np.zeros((4, 4, 1), np.uint8), ImageDomain())
    (tmp_path / stored.path).write_bytes(b"no image")
    with pytest.raises(InfrastructureError, match="gone or damaged"):
        directory.load_input(stored.path)


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


def test_overwriting_follows_no_link(tmp_path: Path) -> None:
    run, elsewhere = claim(tmp_path / "run").path, tmp_path / "elsewhere"
    write_atomically(run / "run.json", b"{}")
    elsewhere.mkdir()
    (elsewhere / "000001.png").touch()
    (run / "findings").symlink_to(elsewhere)
    with pytest.raises(UserError, match="findings is not as edgeflare left it"):
        claim(run, overwrite=True)
    assert (run / "run.json").exists()
    assert [path.name for path in elsewhere.iterdir()] == ["000001.png"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["thesis.txt", ".env", "run.json", "run.db"])
def test_what_is_no_run_is_never_touched(tmp_path: Path, overwrite: bool, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(UserError, match="neither empty nor a run"):
        claim(tmp_path, overwrite=overwrite)
    with pytest.raises(UserError, match="is a file"):
        claim(tmp_path / name, overwrite=overwrite)
    assert (tmp_path / name).read_text() == "precious"


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@given(
    parts=st.lists(st.sampled_from(["findings", "..", ".", "a", "link"]), min_size=1, max_size=6)
)
def test_a_name_never_leads_out_of_the_run_directory(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("outside")
    directory = RunDirectory(folder / "run")
    directory.path.mkdir()
    (directory.path / "link").symlink_to(folder)
    name = "/".join(parts)
    try:
        path = directory.inside(name)
    except UserError:
        return
    assert path.resolve().is_relative_to(directory.path.resolve())
    assert ".." not in parts


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
    journal = Journal.reopen(run / "run.db")
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
