from __future__ import annotations

import importlib.util
import py_compile
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare.core.tensor import Tensor
from edgeflare.models.callable import open_callable
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.python_callable import callable_file, callable_files

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


def test_is_called_on_one_preprocessed_input_at_a_time(write: Write) -> None:
    model = open_callable(write(SUMS), SHAPE)
    images = np.arange(12, dtype=np.float32).reshape(3, 2, 2, 1)
    batch = model.submit(images).result()
    assert batch.outputs.tolist() == [[6.0, 1.0], [22.0, 1.0], [38.0, 1.0]]
    assert model.signature.input == Tensor("input", (1, 2, 2, 1), "float32")
    assert model.signature.output == Tensor("output", (1, 2), "float32")
    model.close()


def test_an_exception_is_the_failure_of_that_input_alone(write: Write) -> None:
    model = open_callable(
        write("def predict(image): return np.ones(2 if image.max() < 5 else 3) + 1"),
        SHAPE,
    )
    batch = model.submit(np.array([0, 9, 0], np.float32).repeat(4).reshape(3, 2, 2, 1)).result()
    assert batch.failures == {1: "error"}
    assert batch.outputs.tolist() == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]
    model.close()


def test_modules_are_found_in_the_working_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(SUMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = open_callable("their_model:predict", SHAPE)
    assert model.submit(np.ones((1, 2, 2, 1), np.float32)).result().outputs[0, 0] == 4.0
    model.close()
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
    for name in ("far/__init__.py", "far/off/__init__.py", "far/off/net.py"):
        (tmp_path / name).write_text("raise RuntimeError('imported')")
    assert callable_files("far.off.net:predict") == (
        tmp_path / "far" / "__init__.py",
        tmp_path / "far" / "off" / "__init__.py",
        tmp_path / "far" / "off" / "net.py",
    )
    assert callable_files("far/off/net.py:predict") == (Path("far/off/net.py"),)
    for absent in ("far.absent:predict", "far.off.net.deeper:predict", "sys:exit", "absent:f"):
        assert callable_file(absent) is None
    assert str(tmp_path) not in sys.path
    assert "far" not in sys.modules
