"""A real browser that opens pages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

CONTRAST = """
const channel = (c) => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
const ground = (node) => {
  for (; node; node = node.parentElement) {
    const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
    if (a === 1) return [r, g, b];
  }
};
const worst = {};
for (const node of document.querySelectorAll("body *")) {
  if (!node.checkVisibility() || node.closest("option, script, .sr")) continue;
  const text = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
  if (!text) continue;
  const style = getComputedStyle(node);
  const ink = node.closest("svg") ? style.fill : style.color;
  const [a, b] = [light(parse(ink)), light(ground(node))].sort((x, y) => y - x);
  const name = node.tagName + "." + node.className.toString();
  worst[name] = Math.min(worst[name] ?? 99, (a + .05) / (b + .05));
}
return worst;
"""

DRAWN = """
const done = arguments[arguments.length - 1];
const opaque = async (image) => {
  image.loading = "eager";
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  let marked = 0;
  for (let at = 0; at < bytes.length; at += 4) {
    marked += bytes[at + 3] > 128;
    colours.add(bytes.slice(at, at + 3).join());
  }
  return [image.className, marked / (canvas.width * canvas.height), colours.size];
};
Promise.all([...document.images].map(opaque)).then(done, (error) => done(String(error)));
"""

AT_REST = """
const [selector, done] = arguments;
const element = document.querySelector(selector);
element.scrollIntoView({block: "center"});
let last = null;
const look = () => {
  const box = element.getBoundingClientRect();
  const middle = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const place = [box.x, box.y, box.width, box.height].join();
  if (place === last && element.contains(middle)) done();
  else { last = place; requestAnimationFrame(look); }
};
requestAnimationFrame(look);
"""

PLAY_BUTTON = 20
"""Pixels from the left edge of Chromium's controls to the middle of the button."""


@dataclass(frozen=True)
class Browser:
    """Chromium without a window."""

    driver: webdriver.Chrome

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a page anew, in a window of that size."""
        self.driver.get("about:blank")
        self.logged("performance")
        self.logged("browser")
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        # A smooth scroll would go on under the pointer.
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", features=[scheme, still])
        self.driver.get(page.as_uri())

    def command(self, name: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page, and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def click(self, selector: str) -> None:
        """Scroll to an element and click it, once it rests under the pointer for two frames."""
        self.driver.execute_async_script(AT_REST, selector)
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def contrasts(self) -> dict[str, float]:
        """Return the contrast of texts to their ground, the least of each kind of element."""
        found: dict[str, float] = self.run(CONTRAST)
        return found

    def drawn_images(self) -> list[tuple[str, float, int]]:
        """Return of each image its class, the share of it that is opaque, and its colours."""
        found: list[tuple[str, float, int]] = self.driver.execute_async_script(DRAWN)
        return found

    def play(self, audio: WebElement) -> bool | str:
        """Click a player's button; return True where it came to its end, or its error."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", audio)
        button = PLAY_BUTTON - audio.size["width"] // 2
        moved = ActionChains(self.driver).move_to_element_with_offset(audio, button, 0)
        moved.click().perform()
        state = "const [one] = arguments; return one.error?.message ?? one.ended"
        WebDriverWait(self.driver, 60).until(lambda _: self.run(state, audio))
        ended: bool | str = self.run(state, audio)
        return ended

    def logged(self, log: str) -> list[dict[str, Any]]:
        """Return what came into a log since it was last read."""
        read: Callable[[str], list[dict[str, Any]]] = self.driver.get_log
        return read(log)

    def requested(self) -> set[str]:
        """Return the addresses that were asked for since the page was opened, data apart."""
        events = [json.loads(entry["message"])["message"] for entry in self.logged("performance")]
        addresses = {
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        }
        return {address for address in addresses if not address.startswith("data:")}


@contextmanager
def started_browser(folder: Path) -> Iterator[Browser]:
    """Start Debian's Chromium in a folder of its own, or skip. It never looks for a network."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(driver, env={**os.environ, "NO_PROXY": "*"})
    started = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(started)
    finally:
        started.quit()
