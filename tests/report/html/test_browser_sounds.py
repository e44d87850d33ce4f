"""The page of a real search in sound, as a reader opens it: heard, seen, and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from searched_sounds import searched_sounds

__all__ = ["searched_sounds"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_real_search_is_heard_seen_and_explained(browser: Any, searched_sounds: Path) -> None:
    found = load_document(RunDirectory(searched_sounds)).findings
    assert found
    browser.open(searched_sounds / "report.html")
    driver = browser.driver
    cards = driver.find_elements(By.CSS_SELECTOR, "#gallery .card")
    assert len(cards) == len(found)
    for card in cards:
        assert len(card.find_elements(By.TAG_NAME, "audio")) == 3
        explained = card.find_element(By.CSS_SELECTOR, ".explained").text
        assert explained.startswith("Verdict: ")
    drawn = browser.drawn_images()
    waves = [marked for name, marked, _ in drawn if name.startswith("wave")]
    spectra = [colours for name, _, colours in drawn if name.startswith("spectrogram")]
    assert len(waves) == len(spectra) == 3 * len(found)
    assert all(0.0 < marked < 1.0 for marked in waves)
    assert all(colours > 20 for colours in spectra[:2])
    audio = cards[0].find_elements(By.TAG_NAME, "audio")[1]
    assert browser.play(audio) is True
    assert browser.run("return arguments[0].duration", audio) == pytest.approx(1.0, abs=0.01)
    assert browser.logged("browser") == []


def test_its_words_are_those_of_sounds(browser: Any, searched_sounds: Path) -> None:
    browser.open(searched_sounds / "report.html")
    text = browser.driver.find_element(By.TAG_NAME, "body").text
    assert "SNR" in text
    for word in ("pixel", "gray", "image", "PSNR"):
        assert word not in text
