from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import UserError
from edgeflare.models.pair_file import Settings
from edgeflare.models.shape_folding import fold_shapes, with_shapes_folded
from edgeflare.rank.candidates import gather
from example_compressions import EXAMPLE, Models

NOTHING = Settings()


@pytest.fixture
def dynamic(models: Models) -> str:
    return str(models.folder / "dynamic.tflite")


def copied(folder: Path, name: str, **changed: str) -> Path:
    """A copy of the example under another name, with other words in its pair.toml."""
    shutil.copytree(EXAMPLE, folder / name)
    toml = folder / name / "pair.toml"
    text = toml.read_text().replace("fashion_lenet4", name)
    for before, after in changed.items():
        assert before in text
        text = text.replace(before, after)
    toml.write_text(text)
    return folder / name


def test_a_further_model_takes_all_else_from_the_first_pair(dynamic: str) -> None:
    first, second = gather([EXAMPLE], [dynamic], NOTHING)
    assert (first.name, second.name) == ("fashion_lenet4", "dynamic")
    assert second.compressed == Path(dynamic)
    for key in ("original", "seeds", "interface", "classes"):
        assert getattr(second, key) == getattr(first, key)


def test_options_alone_are_enough(dynamic: str) -> None:
    given = Settings(
        original=str(EXAMPLE / "original.tflite"), seeds=str(EXAMPLE / "seeds.npz"), preset="unit"
    )
    pairs = gather([], [dynamic, str(EXAMPLE / "compressed.tflite")], given)
    # Its own name would tell nothing.
    assert [pair.name for pair in pairs] == ["dynamic", "fashion_lenet4"]


def test_pair_folders_of_one_original(tmp_path: Path, dynamic: str) -> None:
    other = copied(tmp_path, "other")
    shutil.copy(dynamic, other / "compressed.tflite")
    assert [pair.name for pair in gather([EXAMPLE, other], [], NOTHING)] == [
        "fashion_lenet4",
        "other",
    ]


def test_shapes_are_folded_where_a_candidate_has_some(tmp_path: Path) -> None:
    folded = tmp_path / "folded.tflite"
    folded.write_bytes(fold_shapes((EXAMPLE / "compressed.tflite").read_bytes()).content)
    own, without = gather([EXAMPLE], [str(folded)], Settings(fold_shapes=True))
    assert (own.fold_shapes, without.fold_shapes) == (True, False)
    assert own.notes == ()
    (note,) = without.notes
    assert note.startswith(f"{folded} computes nothing from the shapes of its tensors")
    with with_shapes_folded(without) as opened:
        assert opened.executed == folded


def test_files_of_the_same_name_are_told_apart_by_their_folders(
    tmp_path: Path, dynamic: str
) -> None:
    paths = [tmp_path / folder / "q.tflite" for folder in ("a", "b")]
    for path, content in zip(paths, (Path(dynamic), EXAMPLE / "compressed.tflite"), strict=True):
        path.parent.mkdir()
        shutil.copy(content, path)
    pairs = gather([EXAMPLE], [str(paths[0])], NOTHING)
    assert pairs[1].name == "q"
    given = Settings(original=pairs[0].original, seeds=str(pairs[0].seeds), preset="unit")
    named = gather([], [str(path) for path in paths], given)
    assert [pair.name for pair in named] == ["a-q", "b-q"]


def test_what_cannot_be_ranked_is_refused(tmp_path: Path, dynamic: str) -> None:
    compressed = str(EXAMPLE / "compressed.tflite")
    with pytest.raises(UserError, match="nothing to rank: name pair folders"):
        gather([], [], NOTHING)
    with pytest.raises(UserError, match=r"fashion_lenet4 alone cannot be ranked.*--compressed"):
        gather([EXAMPLE], [], NOTHING)
    with pytest.raises(UserError, match="are the same model"):
        gather([EXAMPLE], [compressed], NOTHING)
    with pytest.raises(UserError, match="are the same model"):
        gather([EXAMPLE], [dynamic, dynamic], NOTHING)
    with pytest.raises(UserError, match=r"has no original model.*--original"):
        gather([], [dynamic, compressed], Settings(seeds=str(EXAMPLE / "seeds.npz")))


def test_what_differs_in_more_than_the_compressed_model_is_refused(
    tmp_path: Path, dynamic: str
) -> None:
    scaled = copied(tmp_path, "scaled", **{"255.0": "254.0"})
    renamed = copied(tmp_path, "renamed", **{'"Ankle boot"': '"Boot"'})
    seeds = copied(tmp_path, "seeds")
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(seeds / "seeds.npz", images=arrays["images"][:9])
    original = copied(tmp_path, "original")
    shutil.copy(dynamic, original / "original.tflite")
    for folder in (scaled, renamed, seeds, original):
        shutil.copy(dynamic, folder / "compressed.tflite")
    for folder, complaint in (
        (scaled, "fashion_lenet4 and scaled are preprocessed differently, .*: say --preset"),
        (renamed, "different classes, T-shirt/top/Trouser/Pullover/… and .*/…: .*one original"),
        (seeds, "different seeds.*--seeds"),
        (original, "different originals.*one original"),
    ):
        with pytest.raises(UserError, match=complaint):
            gather([EXAMPLE, folder], [], NOTHING)
    # What the flags say holds for all of them.
    agreed = Settings(seeds=str(EXAMPLE / "seeds.npz"))
    assert len(gather([EXAMPLE, seeds], [], agreed)) == 2


def test_pairs_whose_runs_would_be_in_one_folder_are_refused(tmp_path: Path, dynamic: str) -> None:
    twin = copied(tmp_path, "twin")
    toml = twin / "pair.toml"
    toml.write_text(toml.read_text().replace('"twin"', '"fashion_lenet4"'))
    shutil.copy(dynamic, twin / "compressed.tflite")
    with pytest.raises(UserError, match="2 of the models are called fashion_lenet4"):
        gather([EXAMPLE, twin], [], NOTHING)
