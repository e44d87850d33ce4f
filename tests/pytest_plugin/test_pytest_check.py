"""Checks as tests, in a user's own pytest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from brief_commands import brief_checks
from called_commands import EXAMPLES
from edgeflare.errors import UserError
from edgeflare.pytest_plugin import EdgeFlare, assert_may_ship
from edgeflare.release.check_document import check_bytes
from public_cases import copied_case

pytestmark = pytest.mark.slow

EXAMPLE = EXAMPLES / "fashion_lenet4"


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    with brief_checks():
        yield


def test_what_may_ship_passes(tmp_path: Path) -> None:
    result = EdgeFlare(["emulated-xnnpack"], tmp_path / "run").check(EXAMPLE, limit=20)
    assert_may_ship(result)
    assert (result.path / "check.json").read_bytes() == check_bytes(result.document)
    assert (result.path / "check.html").is_file()


def test_a_failure_says_why_and_what_to_do(tmp_path: Path) -> None:
    case = copied_case("label_order", tmp_path)
    result = EdgeFlare(["emulated-xnnpack"], tmp_path / "run").check(case, limit=60)
    with pytest.raises(pytest.fail.Exception) as failed:
        assert_may_ship(result, undecided=True)
    said = str(failed.value)
    assert said.startswith("do-not-ship: The compressed model's classes are the original's in")
    assert "gate accuracy-drop: right on" in said
    assert "next: use the labels that belong to the compressed model" in said


def test_an_undecided_check_fails_unless_it_may_not(tmp_path: Path) -> None:
    edgeflare = EdgeFlare(["emulated-xnnpack"], tmp_path / "run")
    result = edgeflare.check(EXAMPLE, limit=5)
    assert_may_ship(result, undecided=True)
    with pytest.raises(pytest.fail.Exception, match="5 inputs cannot decide"):
        assert_may_ship(result)


def test_a_pair_without_an_original_passes_where_its_device_is_right(tmp_path: Path) -> None:
    pair = Path(shutil.copytree(EXAMPLE, tmp_path / "pair"))
    text = (pair / "pair.toml").read_text()
    lines = [one for one in text.splitlines() if not one.startswith("original")]
    (pair / "pair.toml").write_text("\n".join(lines))
    assert_may_ship(EdgeFlare(["emulated-xnnpack"], tmp_path / "run").check(pair, limit=20))


def test_what_is_no_gate_is_refused(tmp_path: Path) -> None:
    edgeflare = EdgeFlare(["emulated-xnnpack"], tmp_path / "run")
    with pytest.raises(UserError, match="there is no gate 'harm'"):
        edgeflare.check(EXAMPLE, gates=["harm<1"])
    with pytest.raises(UserError, match="time_limit=0"):
        edgeflare.check(EXAMPLE, time_limit=0.0)
