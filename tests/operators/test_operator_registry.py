from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare_operators import (
    MutationOperator,
    OperatorError,
    array,
    audio,
    built_in_operators,
    domains,
    frames,
    image,
    operator,
    operator_registry,
    operators,
    tokens,
)
from plugin_package import install_plugin

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
    assert invert not in built_in_operators()
    black = np.zeros((2, 2, 1), np.uint8)
    assert (invert(black, np.random.default_rng(0)) == 255).all()


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
        (real_valued, r"returned ndarray, float64 .* uint8"),
        (flat, r"of shape \(4, 4\).* of shape \(4, 4, 1\)"),
        (nothing, "NoneType"),
    ],
)
def test_a_broken_promise_is_said(mutate: operator_registry.Mutation, complaint: str) -> None:
    broken = MutationOperator("broken", "image", mutate)
    with pytest.raises(OperatorError, match=complaint):
        broken(np.zeros((4, 4, 1), np.uint8), np.random.default_rng(0))


def overwriting(sample: operator_registry.Sample, _rng: np.random.Generator) -> Any:
    sample[:] = 0
    return sample.copy()


def masked(sample: operator_registry.Sample, _rng: np.random.Generator) -> Any:
    library: Any = np.ma
    return library.asarray(sample.copy())


def without_end(sample: operator_registry.Sample, _rng: np.random.Generator) -> Any:
    return sample + np.float32(np.inf)


@pytest.mark.parametrize(
    ("mutate", "complaint"),
    [
        (overwriting, r"'bad' of package .* fails \(ValueError: assignment destination"),
        (masked, "returned MaskedArray"),
        (without_end, "infinity or NaN"),
    ],
)
def test_what_a_foreign_operator_must_not_do_is_said_and_changes_no_input(
    mutate: operator_registry.Mutation, complaint: str
) -> None:
    sample = np.ones((4, 4), np.float32)
    for apply in (mutate, partial(mutate)):  # as it is, and as a domain binds it
        with pytest.raises(OperatorError, match=complaint):
            MutationOperator("bad", "array", apply)(sample, np.random.default_rng(0))
    assert (sample == 1.0).all()


def test_a_mistake_in_a_built_in_operator_is_no_package_to_uninstall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overwriting, "__module__", "edgeflare_operators.array")
    with pytest.raises(ValueError, match="read-only"):
        MutationOperator("ours", "array", partial(overwriting))(
            np.ones(4, np.float32), np.random.default_rng(0)
        )


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
    print(*(op.name for op in operators({names})))
except OperatorError as error:
    print("error:", error)
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a package is installed that offers an operator by itself and by its module."""
    entry_points = {"one": "my_operators:invert", "whole": "my_operators"}
    return install_plugin(
        tmp_path_factory.mktemp("plugin"),
        "my_operators",
        PLUGIN,
        {"edgeflare.operators": entry_points},
    )


def ask(*paths: Path, names: str = "", isolated: bool = False) -> str:
    """What a fresh process says where these folders are installed; isolated: nothing else is."""
    program = ASK.format(names=names)
    done = subprocess.run(
        [sys.executable, *(["-S"] if isolated else []), "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def with_entry_point(plugin: Path, folder: Path, value: str) -> Path:
    """Return a copy of the installed package with one entry point, of that value."""
    copy = folder / "copy"
    shutil.copytree(plugin, copy)
    (info,) = copy.glob("*.dist-info")
    (info / "entry_points.txt").write_text(f"[edgeflare.operators]\ninvert = {value}\n")
    return copy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("my_operators:invert", ""),
        ("my_operators", ""),
        ("my_operators:plain", "my-operators names my_operators:plain, which is no operator"),
        ("my_missing", "of package my-operators do not load (ModuleNotFoundError"),
    ],
)
def test_an_installed_package_adds_operators_or_is_named(
    plugin: Path, tmp_path: Path, value: str, complaint: str
) -> None:
    answer = ask(with_entry_point(plugin, tmp_path, value))
    if complaint:
        assert answer.startswith("error:")
        assert complaint in answer
    else:
        known = [op.name for op in built_in_operators("image")]
        assert answer.split() == sorted([*known, "invert"])


def test_built_in_operators_need_no_other_package(plugin: Path, tmp_path: Path) -> None:
    broken = with_entry_point(plugin, tmp_path, "my_missing")
    assert ask(broken, names="names=['pixel-change']").split() == ["pixel-change"]


def test_an_operator_tells_its_package_and_domain() -> None:
    (known,) = operators(names=["pixel-change"])
    assert (known.package, known.domain) == ("edgeflare_operators", "image")

    @operator("pitch", domain="song")
    def pitch(samples: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
        return -samples

    assert operators("song") == (pitch,)
    assert pitch not in operators("image")
    assert pitch.package == __name__.partition(".")[0]
    assert "song" in domains()
    chosen = operators(names=["median-blur", "average-blur"])
    assert [op.name for op in chosen] == ["median-blur", "average-blur"]


@pytest.mark.parametrize("module", [array, audio, frames, image, tokens])
def test_the_built_in_operators_are_offered_by_an_entry_point(module: ModuleType) -> None:
    domain = module.__name__.rpartition(".")[2]
    (entry,) = (
        entry
        for entry in entry_points(group=operator_registry.ENTRY_POINTS, name=domain)
        if entry.dist is not None and entry.dist.name == "edgeflare"
    )
    assert entry.load() is module
    assert set(built_in_operators(domain)) == {
        made for made in vars(module).values() if isinstance(made, MutationOperator)
    }


def test_a_checkout_that_is_not_installed_says_so(tmp_path: Path) -> None:
    # Without `site` the environment's packages are out of sight; numpy alone is lent.
    (tmp_path / "numpy").symlink_to(Path(np.__file__).parent)
    answer = ask(Path(operator_registry.__file__).parents[1], tmp_path, isolated=True)
    assert answer.count("\n") == 1
    assert answer.startswith("error: edgeflare can be imported but is not installed")
    assert "pip install -e ." in answer
