"""Functions of a user that make objects of a model's outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.tensor_rows import GivenRows, pack_rows
from edgeflare.errors import UserError
from edgeflare.models.post_processing import PostProcessedRows, PostProcessing

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


@pytest.fixture
def function(tmp_path: Path) -> Callable[[str], PostProcessing]:
    def made(code: str) -> PostProcessing:
        (tmp_path / "decode.py").write_text(code)
        return PostProcessing(f"{tmp_path / 'decode.py'}:decode", OBJECTS)

    return made


def rows_of(function: PostProcessing, boxes: Any, scores: Any, **failures: Any) -> RawBatch:
    packed = pack_rows((BOXES, SCORES), (np.array(boxes, np.int8), np.array(scores, np.float32)))
    batch = RawBatch(packed, **failures)
    rows = PostProcessedRows(function, (BOXES, SCORES))
    assert rows.outputs == (OBJECTS,)
    return rows.made_of(GivenRows(np.zeros((len(boxes), 3))), batch)


def test_rows_hold_what_the_function_made_of_the_real_values(
    function: Callable[[str], PostProcessing],
) -> None:
    boxes = [[[10, 12, 14, 16], [20, 30, 40, 50]]] * 2
    batch = rows_of(function(DECODE), boxes, [[0.25, 0.75], [-1.0, -2.0]])
    first, second = batch.outputs.reshape(2, 4, 6)
    np.testing.assert_array_equal(
        first[:2], np.array([[0, 1, 2, 3, 0.25, 0], [5, 10, 15, 20, 0.75, 0]], np.float32)
    )
    unused = np.array([0, 0, 0, 0, -1, 0], np.float32)
    np.testing.assert_array_equal(first[2:], [unused] * 2)
    np.testing.assert_array_equal(second, [unused] * 4)
    assert batch.failures == {}


def test_the_function_is_not_asked_where_the_model_failed(
    function: Callable[[str], PostProcessing],
) -> None:
    boxes = [[[0] * 4] * 2] * 3
    only_first = DECODE.replace("return", "assert scores[0, 0] == 1\n    return")
    scores = [[1.0, 1.0], [np.nan, 1.0], [2.0, 2.0]]
    batch = rows_of(function(only_first), boxes, scores, failures={2: "crash"})
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
    function: Callable[[str], PostProcessing],
    refusal: Callable[..., str],
    returned: str,
    said: str,
) -> None:
    one = function(f"import numpy as np\n\ndef decode(outputs):\n    return {returned}\n")
    line = refusal(one, {})
    assert line.startswith(f"{one.source} {said}; expected rows of numbers: left, top")


@pytest.mark.parametrize("raised", ["ValueError('no anchors')", "SystemExit('no anchors')"])
def test_an_exception_is_one_line_and_its_traceback_a_file(
    function: Callable[[str], PostProcessing],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    raised: str,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = function(f"def decode(outputs):\n    raise {raised}\n")

    with pytest.raises(UserError) as told:
        rows_of(one, np.zeros((1, 2, 4)), [[1.0, 1.0]])
    line = str(told.value)
    assert "\n" not in line
    assert line.startswith(
        f"{one.source} raised {raised.partition('(')[0]}: no anchors: correct it"
    )
    file = Path(line.rpartition("its traceback is in ")[2])
    assert "in decode" in file.read_text()


def test_a_function_that_is_not_there_is_refused(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    one = PostProcessing(f"{tmp_path / 'nowhere.py'}:decode", OBJECTS)
    assert "there is no Python file" in refusal(one, {})


def test_of_more_rows_than_there_are_places_the_best_count(
    function: Callable[[str], PostProcessing],
) -> None:
    scores = [0.1, 0.9, 0.3, 0.8, 0.5, 0.2]
    rows = [[0, 0, 1, 1, score, 0] for score in scores]
    made = function(f"def decode(outputs):\n    return {rows}\n")({})
    assert made[:, 4].tolist() == pytest.approx([0.9, 0.3, 0.8, 0.5])


def test_what_numpy_cannot_read_is_refused_and_its_traceback_kept(
    function: Callable[[str], PostProcessing], refusal: Callable[..., str]
) -> None:
    code = """
class Attached:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("call detach() first")


def decode(outputs):
    return Attached()
"""
    assert "raised RuntimeError: call detach() first: correct it" in refusal(function(code), {})


def test_a_value_error_of_the_function_itself_is_named(
    function: Callable[[str], PostProcessing], refusal: Callable[..., str]
) -> None:
    one = function("def decode(outputs):\n    return [float('x')]\n")
    assert "raised ValueError: could not convert string to float" in refusal(one, {})
