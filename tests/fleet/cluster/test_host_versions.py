"""A host of a fleet with another version is named, and so is the version."""

from __future__ import annotations

import pytest

import edgeflare

pytest.importorskip("ray", reason="the extra fleet brings it")

from edgeflare.fleet.cluster.ray_engine import host_versions, version_difference

pytestmark = pytest.mark.fleet


def test_a_host_is_like_itself() -> None:
    assert host_versions()["EdgeFlare"] == edgeflare.__version__
    assert version_difference(host_versions(), host_versions()) == ""


@pytest.mark.parametrize("what", ["Python", "Ray", "EdgeFlare"])
def test_what_differs_is_named(what: str) -> None:
    mine = {"Python": "3.11.7", "Ray": "2.60.0", "EdgeFlare": "0.1.0"}
    said = version_difference({**mine, what: "9.9"}, mine)
    assert f"has {what} 9.9" in said
    assert f"{mine[what]}: install the same" in said
    lacking = {key: value for key, value in mine.items() if key != what}
    assert f"has {what} None" in version_difference(lacking, mine)
