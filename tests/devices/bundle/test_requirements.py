from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from edgeflare.devices.bundle.requirements import pin_runtime, requirements
from edgeflare.errors import UserError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("said", "pinned"),
    [
        ("litert==1.4.0", "ai-edge-litert==1.4.0"),
        ("ai-edge-litert==2.3.0", "ai-edge-litert==2.3.0"),
        ("tflite-runtime", "tflite-runtime==2.14.0"),
        ("tflite-runtime==2.13.0", "tflite-runtime==2.13.0"),
    ],
)
def test_a_runtime_becomes_a_package_and_its_version(said: str, pinned: str) -> None:
    assert pin_runtime(said) == pinned


def test_litert_alone_is_the_one_of_the_host() -> None:
    assert pin_runtime("litert") == f"ai-edge-litert=={version('ai-edge-litert')}"


@pytest.mark.parametrize("said", ["", "tflite", "litert==", "litert>=2", "numpy==1"])
def test_anything_else_is_refused_by_name(said: str) -> None:
    with pytest.raises(UserError, match="expected litert or tflite-runtime"):
        pin_runtime(said)


@pytest.mark.parametrize("python", [(3, 10), (3, 11), (3, 13)])
def test_the_pins_are_those_that_the_project_is_tested_with(python: tuple[int, int]) -> None:
    tested = (ROOT / "constraints.txt").read_text().splitlines()
    runtime, *others = requirements("ai-edge-litert==2.3.0", python)

    assert runtime == "ai-edge-litert==2.3.0"
    for pin in others:
        if pin.startswith("numpy"):
            marker = "python_version " + ('< "3.11"' if python < (3, 11) else '>= "3.11"')
            assert f"{pin}; {marker}" in tested
        else:
            assert pin in tested


def test_those_of_the_old_runtime_are_those_of_the_old_board() -> None:
    tested = (ROOT / "constraints-old-board.txt").read_text().splitlines()

    assert set(requirements("tflite-runtime==2.14.0", (3, 11))) <= set(tested)


def test_the_old_runtime_needs_an_old_python() -> None:
    with pytest.raises(UserError, match=r"needs Python 3.11 or less.*has 3.13.*Debian 12"):
        requirements("tflite-runtime==2.14.0", (3, 13))
