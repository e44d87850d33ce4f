"""What a pair says of itself: its file, its interface, and the device's own stages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edgeflare.domains.image.preprocess import PRESETS, Preprocess
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Invocation
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings, read_settings
from edgeflare.models.pair_interface import PairInput, PairInterface, merged_tables
from edgeflare.models.pair_toml import pair_toml
from edgeflare.models.run_pair import InterfaceDescription
from edgeflare.record.json_types import JsonValue
from image_interfaces import image_interface, preprocess_of
from tampering import EXAMPLE

Refusal = Callable[..., str]
Written = Callable[[str], Path]

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
    assert load_pair(folder.rename(folder.with_name("cats.toml"))).name == "cats"


@pytest.mark.parametrize("at_top", [True, False])
@pytest.mark.parametrize("classes", [[], ["näme 服", 'a "quoted" \\ one', "#"]])
def test_what_is_written_is_what_is_read(folder: Path, classes: list[str], at_top: bool) -> None:
    images = 'resize = "center-crop"\nchannels = "bgr"\n'
    write(
        folder,
        f"{BASE}classes = {json.dumps(classes, ensure_ascii=False)}\n{images if at_top else ''}"
        f"[preprocess]\nscale = 0.1\nmean = [-3.7, 12]\nstd = [1, 2]\n{'' if at_top else images}",
    )
    pair = load_pair(folder)
    expected = Preprocess(0.1, (-3.7, 12.0), (1.0, 2.0), "center-crop", "bgr")
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
        (BASE + 'inputs = {x = "frames"}', "write above the tables frames = the frames of one"),
        (BASE + 'inputs = "x"', 'write [inputs.NAME] above domain = "…"'),
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
    (folder / "seeds").touch()
    assert "there is no pair folder" in refusal(load_pair, folder / "seeds")
    assert "check original.tflite compressed.tflite" in refusal(load_pair, folder)
    (folder / "compressed.tflite").touch()
    said = refusal(load_pair, folder)
    command = f"edgeflare check original.tflite {folder}/compressed.tflite --inputs seeds.npz"
    assert f"holds no pair.toml: {command} --write-pair {folder} writes one; or give --orig" in said
    assert "--original" not in refusal(load_pair, folder, seeds_option="")
    assert "--compressed" in refusal(load_pair, None)
    assert "--seeds" in refusal(load_pair, None, Settings(compressed="q.tflite"))
    assert "resize is 'fit'" in refusal(Settings, resize="fit")


def test_the_fingerprint_follows_what_decides_the_answers(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    first = load_pair(folder).fingerprint()
    moved = folder.rename(tmp_path / "moved")
    assert load_pair(moved).fingerprint() == first
    assert load_pair(moved, Settings(name="another name")).fingerprint() == first

    others = [Settings(scale=254.0), Settings(outputs="logits"), Settings(channels="bgr")]
    others.append(Settings(original=str(moved / "compressed.tflite")))
    others += [Settings(original="json:dumps"), Settings(original="json:loads")]
    prints = [load_pair(moved, other).fingerprint() for other in others]
    for name in ("original.tflite", "compressed.tflite", "seeds.npz"):
        with (moved / name).open("ab") as file:
            file.write(b"x")
        prints.append(load_pair(moved).fingerprint())
    assert len({first, *prints}) == 1 + len(prints)


def test_paths_are_written_relative_where_they_lie_below_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What moves with the folder is what lies in it."""
    monkeypatch.chdir(folder)
    given = Settings(original="../models/o.tflite", compressed="~c.tflite", seeds="seeds/a.npz")
    pair = load_pair(None, given)
    text = pair_toml(pair, Path("."), "kätzchen", pair.compressed)
    assert 'name = "kätzchen"' in text
    write(folder, text)
    moved = folder.rename(folder.with_name("moved"))
    read = read_settings(moved / "pair.toml")
    assert read.seeds == str(moved / "seeds/a.npz")
    assert read.original == f"{folder}/../models/o.tflite"
    assert read.compressed == f"{folder}/~c.tflite"


def test_the_home_of_an_unknown_user_is_a_folder_that_is_not_there(folder: Path) -> None:
    text = 'compressed = "~no.such.user/c.tflite"\nseeds = "~/s.npz"\n'
    read = read_settings(write(folder, text) / "pair.toml")
    assert read.compressed == str(folder / "~no.such.user/c.tflite")
    assert read.seeds == str(Path.home() / "s.npz")


def test_a_folder_of_seeds_is_known_by_its_images(folder: Path, tmp_path: Path) -> None:
    for name in ("q.tflite", "b.png", "a.png"):
        (folder / name).write_bytes(name.encode())
    pair = load_pair(None, Settings(compressed=str(folder / "q.tflite"), seeds=str(folder)))
    first = pair.fingerprint()
    (folder / "notes.txt").write_text("no image")
    assert pair.fingerprint() == first
    (folder / "c.png").write_bytes(b"c")
    assert pair.fingerprint() != first


def test_sub_folders_count_by_their_labels(folder: Path) -> None:
    (folder / "q.tflite").write_bytes(b"q")
    for name in ("1/a.png", "12/b.png"):
        (folder / "seeds" / name).parent.mkdir(parents=True)
        (folder / "seeds" / name).write_bytes(name.encode())

    def seen(*classes: str) -> str:
        settings = Settings(compressed=str(folder / "q.tflite"), seeds=str(folder / "seeds"))
        return load_pair(None, settings.over(Settings(classes=classes or None))).fingerprint()

    first = seen()
    assert seen("1", "12") not in (first, seen("12", "1"))
    assert seen("cat", "dog") == first
    (folder / "seeds" / "12").rename(folder / "seeds" / "2")
    (folder / "seeds" / "1").rename(folder / "seeds" / "11")
    assert seen() != first


def test_a_fingerprint_of_files_that_are_gone(folder: Path, refusal: Refusal) -> None:
    pair = load_pair(write(folder, BASE + PREPROCESS))
    assert "original.tflite" in refusal(pair.fingerprint)


SETTINGS: dict[str, Any] = {
    "sample_rate": 8_000,
    "samples": 8_000,
    "front_end": {"name": "spectrum", "frame_length": 256, "frame_step": 128},
}
SPEECH = PairInput("sound", "audio", SETTINGS)
STATE = Invocation(state={"state": "next"}, frames=61, shapes={"x": (1, 2)})


def reread(interface: PairInterface) -> InterfaceDescription:
    """What a run keeps of an interface, as it is read from its journal."""
    return msgspec.json.decode(
        msgspec.json.encode(interface.described()), type=InterfaceDescription
    )


@pytest.mark.parametrize(
    "interface",
    [
        image_interface(Preprocess(layout="NCHW", rounding="truncate")).with_outputs("logits"),
        PairInterface((PairInput("", "array"),)),
        PairInterface((SPEECH,), invocation=STATE),
        PairInterface((SPEECH, PairInput("speaker", "array", {"lowest": 0.0}, search=False))),
    ],
)
def test_what_an_interface_says_of_itself_is_read_again(interface: PairInterface) -> None:
    again = PairInterface.of(reread(interface))
    assert reread(again) == reread(interface)
    assert again.domain_name == interface.domain_name
    assert again.invocation == interface.invocation


def test_a_pair_of_images_is_described_as_it_always_was() -> None:
    told = msgspec.to_builtins(image_interface().described())
    assert set(told) == {"outputs", "preprocess"}
    assert None not in told["preprocess"].values()  # TOML has no null


def test_settings_that_are_none_are_one_line(refusal: Refusal) -> None:
    for settings, said in (
        ({"smaple_rate": 1}, "unknown key smaple_rate (did you mean 'sample_rate'?)"),
        ({"sample_rate": "x"}, "[inputs.sound]: sample_rate is 'x': expected `int`, got `str`"),
        ({"sample_rate": 0}, "sample_rate has to be a number of Hz"),
        ({"front_end": {"name": "log-mel"}}, "samples is missing"),
        ({"front_end": "mfcc"}, "expected a table: write [inputs.sound.front_end] above its keys"),
        ({"samples": 1, "front_end": {"name": "mfc"}}, "did you mean 'mfcc'"),
        (
            {"samples": 1, "front_end": {**SETTINGS["front_end"], "frame_length": "256"}},
            "frame_length is '256'",
        ),
    ):
        assert said in refusal(PairInput, "sound", "audio", settings)
    assert "unknown domain 'imge'" in refusal(PairInput, "x", "imge")
    assert "unknown task 'clasification'" in refusal(PairInterface, task="clasification")
    assert "unknown key thres" in refusal(PairInterface, task_settings={"thres": 1})


# The device's own stages.

SOUND = """
[task]
name = "threshold"
threshold = 0.5

[inputs.sound]
domain = "audio"
sample_rate = 8000
samples = 8000

[inputs.sound.front_end]
name = "spectrum"
frame_length = 200
frame_step = 80
"""
IMAGES = """
[preprocess]
scale = 255.0
mean = [0.5]
std = [1.0]
"""


@pytest.fixture
def written(tmp_path: Path) -> Written:
    np.savez(tmp_path / "seeds.npz", images=np.zeros((1, 2, 2), np.uint8))
    (tmp_path / "compressed.tflite").write_bytes(b"")
    (tmp_path / "own.py").write_text("raise SystemExit")

    def write(text: str) -> Path:
        first = 'compressed = "compressed.tflite"\nseeds = "seeds.npz"\n'
        (tmp_path / "pair.toml").write_text(first + text)
        return tmp_path

    return write


def test_a_device_has_the_keys_that_it_says_and_else_those_of_the_pair(written: Written) -> None:
    own = """
    [device.task]
    threshold = 0.55
    [device.inputs.sound]
    front_end.frame_length = 100
    """
    interface = load_pair(written(SOUND + own)).interface
    device = interface.device
    assert device is not None
    assert interface.on_device is device
    assert (interface.task_settings, device.task_settings) == (
        {"threshold": 0.5},
        {"threshold": 0.55},
    )
    (ours,), (theirs,) = interface.inputs, device.inputs
    front_end = ours.settings["front_end"]
    assert isinstance(front_end, dict)
    assert front_end["frame_length"] == 200
    assert theirs.settings == {
        "sample_rate": 8000,
        "samples": 8000,
        "front_end": {"name": "spectrum", "frame_length": 100, "frame_step": 80},
    }
    assert PairInterface.of(reread(interface)) == interface


def test_stages_of_the_device_count_in_the_fingerprint(written: Written) -> None:
    own = (SOUND, *(f"{SOUND}[device.task]\nthreshold = {one}\n" for one in (0.55, 0.6)))
    assert len({load_pair(written(text)).fingerprint() for text in own}) == 3


def test_preprocessing_of_images_is_the_devices_own_too(written: Written) -> None:
    """Options win over the file, and keep what it says of the device."""
    interface = load_pair(written(IMAGES)).interface
    assert interface.device is None
    assert interface.on_device is interface
    assert interface.described().device is None
    folder = written(IMAGES + "[device.preprocess]\nmean = [0.0]\n")
    for options, scale in ((Settings(), 255.0), (Settings(scale=1.0), 1.0)):
        interface = load_pair(folder, options).interface
        ours, theirs = (one.inputs[0].settings for one in (interface, interface.on_device))
        assert {"mean": (0.5,), "scale": scale}.items() <= ours.items()
        assert {"mean": (0.0,), "scale": scale}.items() <= theirs.items()


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("[device.task]\nname = 'regression'\ntolerance = 1.0\n", "the task is 'threshold'"),
        (
            "[device.task]\nthreshhold = 0.5\n",
            "with what [device] says: [task]: unknown key threshhold",
        ),
        ("[device.inputs.sound]\ndomain = 'array'\n", "domain is what all arms have in common"),
        ("[device.inputs.sound]\nsearch = false\n", "search is what all arms have in common"),
        ("[device.inputs.sound]\ntensor = 'x'\n", "tensor is what all arms have in common"),
        ("[device.inputs.noise]\nsamples = 8000\n", "there is no input noise; inputs are sound"),
        ("[device.inputs]\n", "write [device.inputs.NAME] above its keys"),
        ("[device]\nkernels = 'own'\n", "unknown key device.kernels"),
        ("[device]\n", "device is {}; expected a table [device.task]"),
        ("[device.preprocess]\nscale = 2.0\n", "scale is preprocessing of images"),
    ],
)
def test_what_a_device_cannot_have_of_its_own_is_refused(
    written: Written, refusal: Refusal, own: str, said: str
) -> None:
    line = refusal(load_pair, written(SOUND + own))
    assert said in line
    assert "pair.toml" in line


def test_a_front_end_of_the_device_is_a_function_that_needs_trust(
    written: Written, refusal: Refusal
) -> None:
    folder = written(SOUND + "[device.inputs.sound.front_end]\nname = 'own.py:features'\n")
    named = f"{folder / 'own.py'}:features"
    assert f"names the Python function {named}" in refusal(load_pair, folder)
    pair = load_pair(folder, trust=True)
    assert pair.interface.functions == (named,)
    assert len(pair.function_hashes()) == 1
    before = pair.fingerprint()
    (folder / "own.py").write_text("# changed")
    assert pair.fingerprint() != before


def test_a_plain_name_stands_for_the_table_that_holds_it(written: Written) -> None:
    """Of a function too, which needs the same trust and has its place in the pair's folder."""
    text = SOUND.partition("[inputs.sound.front_end]")[0]
    folder = written(f"{text}front_end = 'own.py:features'\n")
    with pytest.raises(UserError, match="names the Python function"):
        load_pair(folder)
    (function,) = load_pair(folder, trust=True).interface.functions
    assert function == f"{folder / 'own.py'}:features"
    tables = "task = {name = 'regression', tolerance = 1.0}\n"
    sounds = load_pair(written(f"{tables}inputs.sound = 'audio'\n")).interface
    assert sounds == load_pair(written(f"{tables}[inputs.sound]\ndomain = 'audio'\n")).interface
    image = load_pair(written("preprocess = 'imagenet'\n")).interface
    assert image == load_pair(written("[preprocess]\npreset = 'imagenet'\n")).interface


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[inputs.x]\ndomain = 'array'\nwindows = {length = 8, step = 4}\n",
            "write above the tables frames = N",
        ),
        ("[inputs.x]\ndomain = 'array'\nwindows = 8\n", "write [inputs.x.windows] above its keys"),
        ("state = 'next'\n", "write [state] above such a line"),
        ("shapes = [1, 49]\n", "write [shapes] above such a line"),
        ("gates = 'rate'\n", "write [gates] above rate = 0.01"),
        (
            "[inputs.sound]\ndomain = 'audio'\nsamples = 800\nfront_end = 'spectrum'\n",
            'front_end = { name = "spectrum", frame_length = 512, frame_step = 128 }',
        ),
        ("[inputs.sound]\ndomain = 'audio'\nfront_end = 5\n", "write [inputs.sound.front_end]"),
        (
            "[inputs.sound]\ndomain = 'audio'\nsamples = 800\nnormalize = 'peak'\n"
            "front_end.name = 'mfcc'\nfront_end.bands = 40\n",
            'wave_scale = "maximum"',
        ),
        (
            "[inputs.sound]\ndomain = 'audio'\nsamples = 800\n"
            "front_end.name = 'log-mel'\nfront_end.bands = 40\n",
            "frame_length, frame_step, fft_length, lowest_hz, highest_hz are missing: add them",
        ),
    ],
)
def test_what_a_plain_value_does_not_say_is_corrected_with_the_line(
    written: Written, refusal: Refusal, text: str, line: str
) -> None:
    assert line in refusal(load_pair, written(text))


def test_a_table_with_another_name_replaces_the_whole_table() -> None:
    base: dict[str, JsonValue] = {"front_end": {"name": "mfcc", "bands": 40}, "samples": 8}
    for own, merged in (
        ({"bands": 20}, {"name": "mfcc", "bands": 20}),
        ({"name": "own.py:f"}, {"name": "own.py:f"}),
    ):
        assert merged_tables(base, {"front_end": own}) == {"front_end": merged, "samples": 8}
    assert base["front_end"] == {"name": "mfcc", "bands": 40}
