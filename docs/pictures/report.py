"""Make the pictures of docs/report.md and docs/repair.md, from the pages of a run and of a repair.

.venv/bin/python docs/pictures/report.py runs/demo/report.html charts gallery
.venv/bin/python docs/pictures/report.py runs/repaired/repair.html candidates mended

They need Chromium; PAGE.png is written beside this script.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
from pathlib import Path

import cv2
import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTH, HEIGHT = 1280, 820
SCALE = 0.75


def main() -> None:
    """Read the command line, and write the picture: one part in light, another in dark."""
    parser = argparse.ArgumentParser(description="Make a picture of a page.")
    parser.add_argument("page", type=Path, help="a report.html or repair.html")
    parser.add_argument("light", help="the id of the part that is shown in light")
    parser.add_argument("dark", help="that of the part that is shown in dark")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    page = options.page.resolve()
    out = options.out or Path(__file__).with_name(f"{page.stem}.png")
    light, dark = photograph(page, options.light, "light"), photograph(page, options.dark, "dark")
    both = np.vstack([light, dark])
    size = (round(both.shape[1] * SCALE), round(both.shape[0] * SCALE))
    small = cv2.resize(both, size, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(out), small, [cv2.IMWRITE_PNG_COMPRESSION, 9])


def photograph(page: Path, part: str, scheme: str) -> np.ndarray:
    """Return what a browser shows of a part of the page, in a colour scheme."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", f"--user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(flag)
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        try:
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False},
            )
            feature = {"name": "prefers-color-scheme", "value": scheme}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            driver.get(page.as_uri())
            driver.execute_script(
                "document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant'})", part
            )
            driver.execute_async_script(
                "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
            )
            shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        finally:
            driver.quit()
    return np.asarray(
        cv2.imdecode(np.frombuffer(base64.b64decode(shot), np.uint8), cv2.IMREAD_COLOR)
    )


if __name__ == "__main__":
    main()
