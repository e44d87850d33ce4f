from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflare.core.seeds import Seeds
from edgeflare.domains.image.preprocess import PRESETS, ImageEncoder, Preprocess
from edgeflare.errors import UserError
from edgeflare.models.evaluator import HostModel
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings, read_settings
from edgeflare.models.tflite import open_tflite
from edgeflare.tasks.classification import ClassDecoder, detect_outputs
from image_interfaces import image_interface, preprocess_of

Refusal = Callable[..., str]

BASE = """
name = "cats"
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"
"""
PREPROCESS = """
[preprocess]
scale = 255
mean = [0.5]
std = 0.25
"""

numbers = st.floats(0.01, 300)
names = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pair").mkdir()
    return tmp_path / "pair"


def write(folder: Path, text: str) -> Path:
    (folder / "pair.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_pair_folder(folder: Path) -> None:
    pair = load_pair(write(folder, BASE + 'classes = ["cat", "dog"]\n' + PREPROCESS))
    assert pair == Pair(
        "cats",
        str(folder / "original.tflite"),
        folder / "compressed.tflite",
        folder / "seeds.npz",
        image_interface(Preprocess(255.0, (0.5,), (0.25,))),
        ("cat", "dog"),
    )
    assert load_pair(folder / "pair.toml") == pair


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    scale=numbers,
    mean=st.lists(st.floats(-300, 300), min_size=1, max_size=4),
    std=st.lists(numbers, min_size=1, max_size=4),
    resize=st.sampled_from(["none", "stretch", "center-crop"]),
    channels=st.sampled_from(["rgb", "bgr"]),
    classes=st.lists(names, max_size=3),
    at_top=st.booleans(),
)
def test_what_is_written_is_what_is_read(
    folder: Path,
    scale: float,
    mean: list[float],
    std: list[float],
    resize: str,
    channels: str,
    classes: list[str],
    at_top: bool,
) -> None:
    say = {
        key: json.dumps(value, ensure_ascii=False)
        for key, value in locals().items()
        if key not in ("folder", "at_top")
    }
    images = f"resize = {say['resize']}\nchannels = {say['channels']}\n"
    write(
        folder,
        f"{BASE}classes = {say['classes']}\n{images if at_top else ''}[preprocess]\n"
        f"scale = {scale!r}\nmean = {mean!r}\nstd = {std!r}\n{'' if at_top else images}",
    )
    pair = load_pair(folder)
    expected = Preprocess(scale, tuple(mean), tuple(std), resize, channels)  # type: ignore[arg-type]
    assert preprocess_of(pair) == expected
    assert pair.classes == tuple(classes)


def test_flags_win_over_the_file(folder: Path) -> None:
    write(folder, BASE + PREPROCESS)
    pair = load_pair(folder, Settings(compressed="other.tflite", scale=1.0, outputs="logits"))
    assert pair.compressed == Path("other.tflite")
    assert pair.seeds == folder / "seeds.npz"
    assert preprocess_of(pair) == Preprocess(1.0, (0.5,), (0.25,))
    assert pair.interface.task_settings == {"outputs": "logits"}
    replaced = load_pair(folder, Settings(preset="imagenet", outputs="auto"))
    assert preprocess_of(replaced) == PRESETS["imagenet"]
    assert not replaced.interface.task_settings


def test_flags_alone() -> None:
    pair = load_pair(None, Settings(compressed="models/q.tflite", seeds="photos"))
    assert (pair.name, pair.original) == ("q", None)
    assert preprocess_of(pair) == Preprocess()
    (note,) = pair.notes
    assert "pixel / 255" in note
    said = load_pair(None, Settings(compressed="q.tflite", seeds="photos", preset="signed"))
    assert preprocess_of(said) == PRESETS["signed"]
    assert not said.notes


def test_a_preset_can_be_changed_in_the_file(folder: Path) -> None:
    text = BASE + '[preprocess]\npreset = "imagenet"\nresize = "center-crop"\nscale = 1\n'
    preprocess = preprocess_of(load_pair(write(folder, text)))
    assert preprocess.mean == PRESETS["imagenet"].mean
    assert (preprocess.scale, preprocess.resize) == (1.0, "center-crop")


def test_callables_of_a_file_are_found_beside_it(folder: Path) -> None:
    for said, expected in {
        "net.py:predict": f"{folder / 'net.py'}:predict",
        "package.net:predict": "package.net:predict",
        "model.onnx": str(folder / "model.onnx"),
    }.items():
        file = write(folder, BASE.replace("original.tflite", said) + PREPROCESS)
        (folder / "net.py").touch()
        assert load_pair(file, trust=True).original == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "not valid TOML"),
        (BASE, "scale, mean, std"),
        (BASE + "[preprocess]\nscale = 255", "says nothing of mean, std"),
        (BASE.replace("compressed =", "compresed =") + PREPROCESS, "did you mean 'compressed'"),
        (BASE + PREPROCESS + "sdt = 1", "unknown key preprocess.sdt (did you mean 'std'?)"),
        (BASE.replace("seeds", "# ") + PREPROCESS, "seeds is missing"),
        (BASE.replace("compressed =", "# ") + PREPROCESS, "compressed is missing"),
        (BASE + PREPROCESS.replace("255", '"255"'), "preprocess.scale is '255'"),
        (BASE + PREPROCESS.replace("255", "true"), "preprocess.scale is True"),
        (BASE + PREPROCESS.replace("255", "0"), "scale has to be above 0"),
        (BASE + PREPROCESS.replace("[0.5]", '["a"]'), "preprocess.mean"),
        (BASE + PREPROCESS.replace("[0.5]", "[]"), "mean"),
        (BASE + "preprocess = 3", "[preprocess]"),
        (BASE + 'classes = "cat"' + PREPROCESS, "classes is 'cat'"),
        (BASE + 'resize = "strech"' + PREPROCESS, "did you mean 'stretch'"),
        (BASE + 'channels = "RGB"' + PREPROCESS, "'rgb' or 'bgr'"),
        (BASE + 'domain = "audio"' + PREPROCESS, "preprocessing of images"),
        (BASE + 'domain = "imge"', "did you mean 'image'?"),
        (BASE + 'task = "clasification"' + PREPROCESS, "did you mean 'classification'?"),
        (BASE + "task = 3" + PREPROCESS, "or a table [task] with a name"),
        (BASE + 'state = {x = "y"}' + PREPROCESS, "say frames = the steps of one clip"),
        (BASE + 'inputs = "x"', "a table [inputs.NAME] for each input"),
        (BASE + '[inputs.x]\ndomain = "array"' + PREPROCESS, "write it under [inputs.NAME]"),
        (BASE + '[inputs.x]\nsearch = "no"', "expected true or false"),
        (BASE + "shapes = {x = [0]}" + PREPROCESS, "with dynamic dimensions"),
        (
            BASE + 'frames = 3\nstate = {x = "y"}\n[inputs.x]\ndomain = "array"',
            "[state] feeds the input x, which [inputs] describes too",
        ),
        (BASE + 'resize = "none"' + PREPROCESS + 'resize = "stretch"', "given twice"),
        (BASE + '[preprocess]\npreset = "unitt"', "did you mean 'unit'"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(
    folder: Path, refusal: Refusal, text: str, words: str
) -> None:
    message = refusal(load_pair, write(folder, text))
    assert words in message
    assert "pair.toml" in message


def test_a_pair_file_is_a_regular_file_of_bounded_size(folder: Path, refusal: Refusal) -> None:
    write(folder, BASE + "# " + "x" * 2**20)
    assert "is larger than 1 MiB" in refusal(load_pair, folder)
    with pytest.raises(UserError, match="is not a regular file"):
        read_settings(Path("/dev/zero"))


def test_refuses_folders_that_hold_no_pair(folder: Path, refusal: Refusal) -> None:
    assert "lost" in refusal(load_pair, folder / "lost")
    assert "holds no pair.toml" in refusal(load_pair, folder)
    assert "--compressed" in refusal(load_pair, None)
    assert "--seeds" in refusal(load_pair, None, Settings(compressed="q.tflite"))
    assert "resize is 'fit'" in refusal(Settings, resize="fit")


def test_the_fingerprint_follows_what_decides_the_answers(
    folder: Path, tmp_path: Path, example: Path
) -> None:
    shutil.copytree(example, folder, dirs_exist_ok=True)
    first = load_pair(folder).fingerprint()
    moved = folder.rename(tmp_path / "moved")
    assert load_pair(moved).fingerprint() == first
    assert load_pair(moved, Settings(name="another name")).fingerprint() == first

    others = [Settings(scale=254.0), Settings(outputs="logits"), Settings(channels="bgr")]
    others.append(Settings(original=str(moved / "compressed.tflite")))
    others.append(Settings(original="json:dumps"))
    prints = [load_pair(moved, other).fingerprint() for other in others]
    for name in ("original.tflite", "compressed.tflite", "seeds.npz"):
        with (moved / name).open("ab") as file:
            file.write(b"x")
        prints.append(load_pair(moved).fingerprint())
    assert len({first, *prints}) == 1 + len(prints)


def test_a_folder_of_seeds_is_known_by_its_images(folder: Path, tmp_path: Path) -> None:
    for name in ("q.tflite", "b.png", "a.png"):
        (folder / name).write_bytes(name.encode())
    pair = load_pair(None, Settings(compressed=str(folder / "q.tflite"), seeds=str(folder)))
    first = pair.fingerprint()
    (folder / "notes.txt").write_text("no image")
    assert pair.fingerprint() == first
    (folder / "c.png").write_bytes(b"c")
    assert pair.fingerprint() != first


def test_a_fingerprint_of_files_that_are_gone(folder: Path, refusal: Refusal) -> None:
    pair = load_pair(write(folder, BASE + PREPROCESS))
    assert "original.tflite" in refusal(pair.fingerprint)


def test_the_shipped_pair_agrees_with_itself_on_its_seeds(example: Path) -> None:
    pair = load_pair(example)
    assert pair.original is not None
    twin = open_tflite(pair.compressed)
    inputs = ModelInputs(pair.interface, twin.signature.inputs, str(pair.compressed))
    original = open_original(pair, inputs)
    try:
        seeds = inputs.load(pair.seeds)
        ours, theirs = (labels_and_ties(model, pair, seeds) for model in (twin, original))
    finally:
        twin.close()
        original.close()
    deviating = (ours[0] != theirs[0]) & ~ours[1] & ~theirs[1]
    assert deviating.mean() < 0.02
    assert seeds.labels is not None
    assert (theirs[0] == seeds.labels).mean() > 0.8


def labels_and_ties(
    model: HostModel, pair: Pair, seeds: Seeds
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    encoder = ImageEncoder(preprocess_of(pair), model.signature.input)
    raw = model.submit(encoder.encode(seeds.inputs)).result()
    outputs = detect_outputs(model.signature.output, model.operators, raw.outputs)
    assert outputs == "probabilities"
    decoded = ClassDecoder(model.signature.output, outputs).decode(raw)
    return decoded.labels, decoded.tied
