from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare_operators import (
    MutationOperator,
    OperatorError,
    operator,
    operator_registry,
    operators,
)

Image = NDArray[np.uint8]


def unchanged(image: Image, rng: np.random.Generator) -> Image:
    return image


def real_valued(image: Image, rng: np.random.Generator) -> Any:
    return image + 0.5


def flat(image: Image, rng: np.random.Generator) -> Any:
    return image[..., 0]


def nothing(image: Image, rng: np.random.Generator) -> Any:
    return None


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    operators()
    monkeypatch.setattr(operator_registry, "_registered", dict(operator_registry._registered))


def test_a_decorated_function_is_an_operator_known_by_name() -> None:
    @operator("invert")
    def invert(image: Image, rng: np.random.Generator) -> Image:
        return 255 - image

    assert isinstance(invert, MutationOperator)
    assert operators(names=["invert"]) == (invert,)
    assert invert in operators()
    black = np.zeros((2, 2, 1), np.uint8)
    assert (invert(black, np.random.default_rng(0)) == 255).all()


def test_names_choose_and_order() -> None:
    chosen = operators(names=["median-blur", "average-blur"])
    assert [op.name for op in chosen] == ["median-blur", "average-blur"]


def test_domains_are_apart() -> None:
    @operator("pitch", domain="audio")
    def pitch(samples: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
        return -samples

    assert operators("audio") == (pitch,)
    assert pitch not in operators("image")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(OperatorError, match=r"'median-blurr'; did you mean median-blur") as caught:
        operators(names=["median-blurr"])
    assert "\n" not in str(caught.value)
    with pytest.raises(OperatorError, match="there are average-blur, gaussian-blur"):
        operators(names=["zzz"])


def test_a_name_is_taken_once() -> None:
    with pytest.raises(OperatorError, match="two image operators named 'pixel-change'"):
        operator("pixel-change")(unchanged)


@pytest.mark.parametrize(
    ("mutate", "complaint"),
    [
        (unchanged, "returned its input"),
        (real_valued, r"returned float64 .* it must return uint8"),
        (flat, r"of shape \(4, 4\).* of shape \(4, 4, 1\)"),
        (nothing, "NoneType"),
    ],
)
def test_a_broken_promise_is_said(mutate: operator_registry.Mutation, complaint: str) -> None:
    broken = MutationOperator("broken", "image", mutate)
    with pytest.raises(OperatorError, match=complaint):
        broken(np.zeros((4, 4, 1), np.uint8), np.random.default_rng(0))


PLUGIN = """
from edgeflare_operators import operator

@operator("invert")
def invert(image, rng):
    return 255 - image

def plain(image, rng):
    return 255 - image
"""

ASK = """
from edgeflare_operators import OperatorError, operators
try:
    print(*(op.name for op in operators()))
except OperatorError as error:
    print("error:", error)
"""


def ask_with_plugin(folder: Path, value: str) -> str:
    """What a fresh process says where a package offers `value` as an entry point."""
    (folder / "my_operators.py").write_text(PLUGIN)
    info = folder / "my_operators-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-operators\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[edgeflare.operators]\ninvert = {value}\n")
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n{ASK}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("value", ["my_operators:invert", "my_operators"])
def test_an_installed_package_adds_operators(tmp_path: Path, value: str) -> None:
    assert "invert" in ask_with_plugin(tmp_path, value).split()


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("my_operators:plain", "my-operators names my_operators:plain, which is no operator"),
        ("my_missing", "of package my-operators do not load (ModuleNotFoundError"),
    ],
)
def test_a_broken_package_is_named(tmp_path: Path, value: str, complaint: str) -> None:
    answer = ask_with_plugin(tmp_path, value)
    assert answer.startswith("error:")
    assert complaint in answer
