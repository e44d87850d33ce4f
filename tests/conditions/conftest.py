from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from edgeflare.conditions import condition_registry
from edgeflare.conditions.condition_registry import ENTRY_POINTS

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install modules of others beside ours, by their names and sources."""
    ours = tuple(entry_points(group=ENTRY_POINTS))
    known = set(sys.modules)
    caches = (condition_registry._others, condition_registry._ours)

    def make(**sources: str) -> None:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        theirs = tuple(EntryPoint(f"a-{name}", name, ENTRY_POINTS) for name in sources)
        monkeypatch.setattr(condition_registry, "entry_points", lambda **_group: theirs + ours)
        for cached in caches:
            cached.cache_clear()

    yield make
    for cached in caches:
        cached.cache_clear()
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
