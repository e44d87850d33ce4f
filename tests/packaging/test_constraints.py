"""The constraint files pin every package that an environment gets, direct or not."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("audio", "dev", "onnx", "plots", "repair", "report")
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


CAPPED = {
    "ai-edge-model-explorer": "cli/test_overlay_files.py",
    "audiomentations": "operators/test_audio.py",
    "jax": "whitebox",
    "litert-quantizer": "repair/fitting/test_quantizer.py",
    "opencv-python-headless": "conditions/image/test_published_corruptions.py",
    "protobuf": "protos/test_wire.py",
    "ray": "fleet/cluster",
    "scikit-learn": "cli/test_inspect.py",
}
"""What a dependency has a cap for, with the tests that a newer one has to pass first."""


def pins(file: str) -> list[Requirement]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def applies(requirement: Requirement, extras: frozenset[str], python: str | None = None) -> bool:
    """Say whether a requirement counts, on this Python unless another is given."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"} if python else {}
    return requirement.marker is None or any(
        requirement.marker.evaluate({**environment, "extra": extra}) for extra in extras or ("",)
    )


def closure(root: str, extras: frozenset[str]) -> set[str]:
    """Follow the installed metadata from a package to everything that it needs."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(root, extras)]
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        name, wanted = here
        try:
            needed = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            pytest.fail(f"{name} is not installed: run `make env`")
        todo += [
            (canonicalize_name(requirement.name), frozenset(requirement.extras))
            for requirement in needed
            if applies(requirement, wanted)
        ]
    return {name for name, _ in seen if name != root}


def test_every_package_of_the_environment_is_pinned() -> None:
    pinned = {
        canonicalize_name(pin.name) for pin in pins("constraints.txt") if applies(pin, frozenset())
    }
    assert closure("edgeflare", frozenset(EXTRAS)) - pinned == set()


@pytest.mark.parametrize("python", PYTHONS)
def test_each_python_gets_one_version_that_pyproject_allows(python: str) -> None:
    chosen: dict[str, str] = {}
    for pin in pins("constraints.txt"):
        (specifier,) = pin.specifier
        assert specifier.operator == "=="
        if applies(pin, frozenset(), python):
            assert chosen.setdefault(canonicalize_name(pin.name), specifier.version) == (
                specifier.version
            ), f"{pin.name} has two pins"
    for line in requires("edgeflare") or ():
        requirement = Requirement(line)
        if applies(requirement, frozenset(EXTRAS), python):
            assert chosen[canonicalize_name(requirement.name)] in requirement.specifier


def test_each_cap_of_a_dependency_has_a_test_of_what_it_guards() -> None:
    needed = [Requirement(line) for line in requires("edgeflare") or ()]
    capped = {one.name for one in needed for part in one.specifier if part.operator != ">="}
    assert capped == CAPPED.keys()
    for name, tests in CAPPED.items():
        place = ROOT / "tests" / tests
        files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        module = name.split("-")[0]
        told = {"opencv": "cv2", "scikit": "sklearn", "litert": "litert_quantizer", "ai": "model"}
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        assert told.get(module, module) in text, name


def test_all_environments_speak_through_the_same_wire() -> None:
    here, board, litert = (
        {pin.name: str(pin.specifier) for pin in pins(f"constraints{which}.txt")}
        for which in ("", "-old-board", "-old-litert")
    )
    for name in ("grpcio", "grpcio-health-checking", "protobuf"):
        assert board[name] == litert[name] == here[name]
    assert board["tflite-runtime"] == "==2.14.0"
    assert board["numpy"].startswith("==1.")
    assert litert["ai-edge-litert"] == "==1.2.0"
