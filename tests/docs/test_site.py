"""The documentation as a site."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.site]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which `make site` makes the pages."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site") / "source"
    shutil.copytree(ROOT / "docs", folder)
    for file in (ROOT / "site").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    return folder


def built(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    return subprocess.run(
        [*command, source, out],
        env={**os.environ, "EDGEFLARE_CHECKOUT": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def test_the_site_has_each_page_and_loads_nothing_from_elsewhere(
    source: Path, tmp_path: Path
) -> None:
    made = built(source, tmp_path)
    assert made.returncode == 0, made.stderr
    pages = {page.relative_to(source).with_suffix(".html") for page in source.rglob("*.md")}
    assert {page for page in pages if not (tmp_path / page).is_file()} == set()
    assert (tmp_path / "searchindex.js").is_file()
    listed = re.findall(r"\]\(([^)]+)\)", (tmp_path / "llms.txt").read_text())
    assert [name for name in listed if not (tmp_path / name).is_file()] == []
    loaded = re.compile(r"<(?:link|script|img)\b[^>]*\b(?:src|href)=\"https?:")
    assert [page for page in pages if loaded.search((tmp_path / page).read_text())] == []
    assert "may_ship" in (tmp_path / "reference.html").read_text()


def test_a_link_that_leads_nowhere_fails_it(source: Path, tmp_path: Path) -> None:
    page = source / "check.md"
    text = page.read_text()
    for link in ("[a](../host/edgeflare/gone.py)", "[b](gates.md#gone)"):
        page.write_text(f"{text}\n{link}\n")
        made = built(source, tmp_path)
        assert made.returncode != 0
        assert "check.md" in made.stderr
