"""Functions of the user: as originals, behind a detector, and what was agreed to."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.tensor import GivenRows, RawBatch, Tensor, pack_rows
from edgeflare.models.in_process import open_callable
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.post_processing import PostProcessedRows, PostProcessing
from edgeflare.python_callable import callable_file, callable_files
from edgeflare.trust import has_changed, is_agreed, keep_agreed

SHAPE = (1, 2, 2, 1)

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(code: str) -> str:
        path = tmp_path / "their_model.py"
        path.write_text("import numpy as np\n" + textwrap.dedent(code))
        return f"{path}:predict"

    return file


SUMS = """
def predict(image):
    assert image.shape == (1, 2, 2, 1) and image.dtype == np.float32
    return [[image.sum(), 1.0]]
"""


def answered(source: str, images: NDArray[np.float32]) -> RawBatch:
    with closing(open_callable(source, SHAPE)) as model:
        assert model.signature.input == Tensor("input", (1, 2, 2, 1), "float32")
        assert model.signature.output == Tensor("output", (1, 2), "float32")
        return model.submit(images).result()


def test_is_called_on_one_preprocessed_input_at_a_time(write: Write) -> None:
    images = np.arange(12, dtype=np.float32).reshape(3, 2, 2, 1)
    batch = answered(write(SUMS), images)
    assert batch.outputs.tolist() == [[6.0, 1.0], [22.0, 1.0], [38.0, 1.0]]


def test_an_exception_is_the_failure_of_that_input_alone(write: Write) -> None:
    source = write("def predict(image): return np.ones(2 if image.max() < 5 else 3) + 1")
    batch = answered(source, np.array([0, 9, 0], np.float32).repeat(4).reshape(3, 2, 2, 1))
    assert batch.failures == {1: "error"}
    assert batch.outputs.tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]


@pytest.mark.parametrize("odd", ["np.ones(1)", "exit(3)"])
def test_one_number_for_all_scores_and_an_exit_are_failures_too(odd: str, write: Write) -> None:
    source = write(f"def predict(image): return np.ones(2) if image.max() < 5 else {odd}")
    batch = answered(source, np.array([0, 9], np.float32).repeat(4).reshape(2, 2, 2, 1))
    assert batch.failures == {1: "error"}


def test_what_a_function_does_to_its_input_changes_no_other_arms(write: Write) -> None:
    images = np.ones((2, 2, 2, 1), np.float32)
    answered(write("def predict(image):\n    image -= 9\n    return [[image.sum(), 1.0]]"), images)
    assert (images == 1).all()


def test_modules_are_found_in_the_working_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(SUMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    batch = answered("their_model:predict", np.ones((1, 2, 2, 1), np.float32))
    assert batch.outputs[0, 0] == 4.0
    assert callable_file("their_model:predict") == tmp_path / "their_model.py"
    assert callable_file("no_such_module_here:predict") is None


def test_a_module_runs_from_its_source_never_from_bytecode_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytecode of the kind "unchecked hash" is run by Python whatever the source says."""
    package = tmp_path / "around_source"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "net.py").write_text("import numpy as np\n" + textwrap.dedent(SUMS))
    other = tmp_path / "other.py"
    other.write_text("raise RuntimeError('bytecode was run')")
    for file in package.glob("*.py"):
        py_compile.compile(
            str(other),
            importlib.util.cache_from_source(str(file)),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    monkeypatch.chdir(tmp_path)
    finders = list(sys.meta_path)
    open_callable("around_source.net:predict", SHAPE).close()
    assert sys.meta_path == finders


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1", "has no function 'predict'"),
        ("predict = 1", "'predict' is not a function"),
        ("1 / 0", "ZeroDivisionError"),
        ("exit(3)", "SystemExit"),
        ("def predict(", "SyntaxError"),
        ("def predict(image): exit(3)", "SystemExit"),
        ("def predict(image): raise RuntimeError('one\\ntwo')", "RuntimeError: one two"),
        ("def predict(image): return np.array([1, 2])", "it returned int64"),
    ],
)
def test_refuses_with_what_went_wrong(
    write: Write, refusal: Callable[..., str], code: str, words: str
) -> None:
    message = refusal(open_callable, write(code), SHAPE)
    assert words in message
    assert "their_model.py" in message


def test_refuses_what_is_not_there(refusal: Callable[..., str]) -> None:
    assert "no_such_module" in refusal(open_callable, "no_such_module:predict", SHAPE)
    assert "there is no Python file lost.py" in refusal(open_callable, "lost.py:predict", SHAPE)
    inputs = ModelInputs(PairInterface(), [Tensor("image", SHAPE, "int8")], "the model")
    pair = Pair("one", "model.pt", Path("q.tflite"), Path("seeds.npz"))
    assert "there is no original model model.pt" in refusal(open_original, pair, inputs)


def test_the_files_of_a_callable_are_found_without_importing_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far" / "off").mkdir(parents=True)
    names = ("far/__init__.py", "far/off/__init__.py", "far/off/net.py")
    for name in names:
        (tmp_path / name).write_text("raise RuntimeError('imported')")
    assert callable_files("far.off.net:predict") == tuple(tmp_path / name for name in names)
    assert callable_files("far/off/net.py:predict") == (Path("far/off/net.py"),)
    for absent in ("far.absent:predict", "far.off.net.deeper:predict", "sys:exit", "absent:f"):
        assert callable_file(absent) is None
    assert str(tmp_path) not in sys.path
    assert "far" not in sys.modules


CODE = "def one(x):\n    return x\n\n\ndef other(x):\n    return x\n"


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "front.py").write_text(CODE)
    return f"{tmp_path / 'mine' / 'front.py'}:one"


def test_what_is_agreed_to_holds_for_this_function_and_this_code(function: str) -> None:
    assert not is_agreed(function)
    keep_agreed(function)
    assert is_agreed(function)
    assert is_agreed("mine/front.py:one")
    file = Path(function.rpartition(":")[0])
    file.write_text(f"{CODE}# changed\n")
    assert not is_agreed(function)
    assert has_changed(function)
    file.write_text(CODE)
    assert is_agreed(function)
    assert not has_changed(function)


def test_it_holds_for_nothing_else_that_a_stranger_names(function: str, tmp_path: Path) -> None:
    keep_agreed(function)
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "mine", theirs / "copied")
    os.symlink(tmp_path / "mine", theirs / "linked")
    os.mkfifo(theirs / "pipe.py")
    for named in (
        function.replace(":one", ":other"),
        f"{theirs / 'copied' / 'front.py'}:one",
        f"{theirs / 'linked' / 'front.py'}:one",
        f"{theirs / 'pipe.py'}:one",
        f"{theirs / 'absent.py'}:one",
        f"{tmp_path / 'mine'}.py:one",
        "front:one",
        "json:loads",
        function.rpartition(":")[0],
        "",
    ):
        assert not is_agreed(named)
        assert not has_changed(named)


def test_a_module_is_agreed_to_where_its_files_are(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "mine")
    keep_agreed("front:one")
    assert is_agreed("front:one")
    shutil.copytree(tmp_path / "mine", tmp_path / "theirs")
    monkeypatch.chdir(tmp_path / "theirs")
    assert not is_agreed("front:one")
    assert not is_agreed(function)


OBJECTS = Tensor("objects", (1, 4, 6), "float32")
BOXES = Tensor("boxes", (1, 2, 4), "int8", 0.5, 10)
SCORES = Tensor("scores", (1, 2), "float32")

DECODE = """
import numpy as np

def decode(outputs):
    boxes, scores = outputs["boxes"], outputs["scores"]
    assert boxes.shape == (1, 2, 4) and boxes.dtype == np.float32
    kept = np.flatnonzero(scores[0] > 0)
    return [[*boxes[0, at], scores[0, at], 0] for at in kept]
"""


Decoding = Callable[[str], PostProcessing]


@pytest.fixture
def decoding(tmp_path: Path) -> Decoding:
    def made(code: str) -> PostProcessing:
        (tmp_path / "decode.py").write_text(code)
        return PostProcessing(f"{tmp_path / 'decode.py'}:decode", OBJECTS)

    return made


def rows_of(decoding: PostProcessing, boxes: Any, scores: Any, **failures: Any) -> RawBatch:
    packed = pack_rows((BOXES, SCORES), (np.array(boxes, np.int8), np.array(scores, np.float32)))
    batch = RawBatch(packed, **failures)
    rows = PostProcessedRows(decoding, (BOXES, SCORES))
    assert rows.outputs == (OBJECTS,)
    return rows.made_of(GivenRows(np.zeros((len(boxes), 3))), batch)


def test_rows_hold_what_the_function_made_of_the_real_values(decoding: Decoding) -> None:
    boxes = [[[10, 12, 14, 16], [20, 30, 40, 50]]] * 2
    batch = rows_of(decoding(DECODE), boxes, [[0.25, 0.75], [-1.0, -2.0]])
    first, second = batch.outputs.reshape(2, 4, 6)
    np.testing.assert_array_equal(
        first[:2], np.array([[0, 1, 2, 3, 0.25, 0], [5, 10, 15, 20, 0.75, 0]], np.float32)
    )
    unused = np.array([0, 0, 0, 0, -1, 0], np.float32)
    np.testing.assert_array_equal(first[2:], [unused] * 2)
    np.testing.assert_array_equal(second, [unused] * 4)
    assert batch.failures == {}


def test_the_function_is_not_asked_where_the_model_failed(decoding: Decoding) -> None:
    boxes = [[[0] * 4] * 2] * 3
    only_first = DECODE.replace("return", "assert scores[0, 0] == 1\n    return")
    scores = [[1.0, 1.0], [np.nan, 1.0], [2.0, 2.0]]
    batch = rows_of(decoding(only_first), boxes, scores, failures={2: "crash"})
    assert batch.failures == {1: "error", 2: "crash"}
    assert (batch.outputs.reshape(3, 4, 6)[1:, :, 4] == -1).all()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("[[0, 0, 1, 1, 0.5]]", "returned an array of shape (1, 5)"),
        ("np.zeros((1, 1, 6))", "returned an array of shape (1, 1, 6)"),
        ("[[0, 0, 1, float('nan'), 0.5, 0]]", "returned numbers that are not finite"),
        ("[['a'] * 6]", "returned an array of <U1"),
        ("None", "returned an array of object"),
        ("[[0], [1, 2]]", "returned rows of different lengths"),
    ],
)
def test_something_else_than_objects_is_refused(
    decoding: Decoding, refusal: Callable[..., str], returned: str, said: str
) -> None:
    one = decoding(f"import numpy as np\n\ndef decode(outputs):\n    return {returned}\n")
    assert refusal(one, {}).startswith(f"{one.source} {said}; expected rows of numbers: left, top")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no anchors')", "ValueError: no anchors"),
        ("raise SystemExit('no anchors')", "SystemExit: no anchors"),
        ("return [float('x')]", "ValueError: could not convert string to float"),
        (
            "class Attached:\n        def __array__(self, *_, **_more):\n"
            "            return 1 // 0\n    return Attached()",
            "ZeroDivisionError",
        ),
    ],
    ids=["raised", "exit", "its own", "in the conversion"],
)
def test_an_exception_is_one_line_and_its_traceback_a_file(
    decoding: Decoding,
    refusal: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: str,
    said: str,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = decoding(f"def decode(outputs):\n    {code}\n")
    line = refusal(rows_of, one, np.zeros((1, 2, 4)), [[1.0, 1.0]])
    assert line.startswith(f"{one.source} raised {said}")
    assert ": correct it; its traceback is in " in line
    assert "Traceback" in Path(line.rpartition("its traceback is in ")[2]).read_text()


def test_of_more_rows_than_there_are_places_the_best_count(decoding: Decoding) -> None:
    scores = [0.1, 0.9, 0.3, 0.8, 0.5, 0.2]
    rows = [[0, 0, 1, 1, score, 0] for score in scores]
    made = decoding(f"def decode(outputs):\n    return {rows}\n")({})
    assert made[:, 4].tolist() == pytest.approx([0.9, 0.3, 0.8, 0.5])
