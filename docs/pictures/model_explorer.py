"""Make the picture of docs/explain/pictures.md: an overlay, all layers unfolded.

edgeflare search examples/fashion_lenet4 --find kernel --device emulated-builtin --first 6 \
    --max-queries 300 --shrink 0 --fail-on none --out runs/kernel
edgeflare explain runs/kernel --model-explorer
model-explorer examples/fashion_lenet4/compressed.tflite --no_open_in_browser \
    --node_data_paths="$(ls -m runs/kernel/explain/000005.model-explorer/*)"
.venv/bin/python docs/pictures/model_explorer.py ADDRESS

model-explorer prints the address. The script needs Chromium, and writes model_explorer.png beside
itself.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

WIDTH, HEIGHT = 1040, 720
SECONDS = 60
SETTLES_SECONDS = 4.0
"""Layers unfold, and the graph moves into its place."""

LOADED = """
const rows = document.querySelectorAll("table.results tbody tr");
return [...rows].some((row) => row.lastElementChild.innerText.trim() !== "-");
"""
CLICK = """
const icons = [...document.querySelectorAll("mat-icon")];
icons.find((icon) => icon.innerText === arguments[0]).click();
"""
WITHOUT_TOOLTIPS = 'document.querySelector(".cdk-overlay-container")?.remove();'


def main() -> None:
    """Read the command line, and write the picture."""
    parser = argparse.ArgumentParser(description="Make a picture of an overlay.")
    parser.add_argument("address", help="what model-explorer printed")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"))
    options = parser.parse_args()
    options.out.write_bytes(photograph(options.address))


def photograph(address: str) -> bytes:
    """Return what a browser shows of the page, as a PNG file."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(flag)
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        try:
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False},
            )
            driver.get(address)
            WebDriverWait(driver, SECONDS).until(lambda _: driver.execute_script(LOADED))
            for icon in ("unfold_more_double", "fit_screen"):
                driver.execute_script(CLICK, icon)
                time.sleep(SETTLES_SECONDS)
            driver.execute_script(WITHOUT_TOOLTIPS)
            shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        finally:
            driver.quit()
    return base64.b64decode(shot)


if __name__ == "__main__":
    main()
