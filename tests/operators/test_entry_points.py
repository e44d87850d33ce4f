"""Entry points of installed packages, read once."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from edgeflare_operators.entry_points import entry_points
from plugin_package import install_plugin


def test_two_groups_take_one_look_at_the_installed_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = {"songs": {"low": "my_songs:low"}, "singers": {"alto": "my_songs:alto"}}
    monkeypatch.syspath_prepend(install_plugin(tmp_path, "my_songs", "", offered))
    looks, read = [], importlib.metadata.entry_points

    def look() -> object:
        looks.append(offered)
        return read()

    monkeypatch.setattr(importlib.metadata, "entry_points", look)
    for group, points in offered.items():
        (found,) = entry_points(group=group)
        assert {found.name: found.value} == points
        assert found.dist is not None
        assert found.dist.name == "my-songs"
    assert looks == [offered]


def test_a_package_on_a_longer_search_path_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not entry_points(group="songs")
    folder = install_plugin(tmp_path, "my_songs", "", {"songs": {"low": "my_songs:low"}})
    monkeypatch.syspath_prepend(folder)
    assert [found.name for found in entry_points(group="songs")] == ["low"]
