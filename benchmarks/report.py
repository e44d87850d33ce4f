"""Measure the HTML report of a run with a thousand findings: its size, and how soon it is seen.

.venv/bin/python benchmarks/report.py runs/demo    (needs the extra `report`, and Chromium)

The findings of a real run are repeated under other seed ids until there are enough.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import tempfile
import time
from itertools import cycle
from pathlib import Path
from statistics import median

from msgspec.structs import replace
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from edgeflare.report.html.explanation_view import load_explanation_views
from edgeflare.report.html.run_html import run_html
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument

PAINT = """
const [paint] = performance.getEntriesByName("first-contentful-paint");
const [page] = performance.getEntriesByType("navigation");
return [paint.startTime, page.loadEventEnd];
"""

SORT = """
const done = arguments[arguments.length - 1];
const order = document.querySelector("[name=order]");
order.value = order.value === "seed" ? "queries" : "seed";
const before = performance.now();
order.dispatchEvent(new Event("change", {bubbles: true}));
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - before)));
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="a run directory with findings")
    parser.add_argument("--findings", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5, help="how often the page is opened")
    options = parser.parse_args()
    directory = RunDirectory(options.run)
    document = repeated(load_document(directory), options.findings)
    began = time.perf_counter()
    page = run_html(document, directory, load_explanation_views(directory, document)).encode()
    made = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_bytes(page)
        painted, loaded, sorted_ = watch(path, options.times)
    print(f"{options.findings:,} findings, {platform.machine()}, medians of {options.times}")
    print(f"made in          {made:8.1f} s")
    print(f"size             {len(page) / 1e6:8.1f} MB")
    print(f"first paint      {painted / 1e3:8.2f} s")
    print(f"loaded           {loaded / 1e3:8.2f} s")
    print(f"sorted and drawn {sorted_ / 1e3:8.2f} s")


def repeated(document: RunDocument, findings: int) -> RunDocument:
    """Return a run with that many findings, the same ones again and again."""
    found = document.findings
    seeds = document.totals.seeds
    more = tuple(
        replace(one, seed_id=one.seed_id + n // len(found) * seeds)
        for n, one in zip(range(findings), cycle(found), strict=False)
    )
    totals = replace(document.totals, findings=findings, seeds=findings, success_rate=1.0)
    return replace(document, findings=more, totals=totals)


def watch(page: Path, times: int) -> tuple[float, float, float]:
    """Open a page in new browsers; return the medians of first paint, load and sorting, in ms."""
    seen = [_open(page) for _ in range(times)]
    painted, loaded, sorted_ = (median(values) for values in zip(*seen, strict=True))
    return painted, loaded, sorted_


def _open(page: Path) -> tuple[float, float, float]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--window-size=1280,900", f"--user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(flag)
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        try:
            driver.get(page.as_uri())
            painted, loaded = driver.execute_script(PAINT)
            return painted, loaded, driver.execute_async_script(SORT)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
