"""Runs that are merged in groups are the whole, as if merged at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.run.merge import merge_groups
from edgeflare.run.merge.merge_groups import merge_in_groups
from merged_parts import MergedParts
from run_content import content_differences, run_content

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("group", [2, 3, 100])
def test_groups_of_any_size_are_the_whole(
    parts: MergedParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int
) -> None:
    monkeypatch.setattr(merge_groups, "GROUP", group)
    out = tmp_path / "new" / "merged"
    merge_in_groups([*parts.singles, *parts.stopped[:1]], out, overwrite=False)
    assert content_differences(run_content(out), parts.whole) == []
    assert list(out.parent.iterdir()) == [out]
