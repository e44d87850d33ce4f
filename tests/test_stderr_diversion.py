"""What C libraries write to stderr by themselves."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import cv2
import pytest

from edgeflare.domains.image.image_file import held_back
from edgeflare.stderr_diversion import STDERR, diverted_stderr


def test_what_is_written_meanwhile_goes_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "said").open("w+b") as file:
        with suppress(KeyError), diverted_stderr(file.fileno()):
            os.write(STDERR, b"kept\n")
            raise KeyError
        with diverted_stderr():
            os.write(STDERR, b"lost\n")
        os.write(STDERR, b"heard\n")
        file.seek(0)
        assert file.read() == b"kept\n"
    assert capfd.readouterr().err == "heard\n"


def test_threads_that_end_theirs_in_any_order_leave_stderr_as_it_was(
    capfd: pytest.CaptureFixture[str],
) -> None:
    first, second = diverted_stderr(), diverted_stderr()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    os.write(STDERR, b"lost\n")
    second.__exit__(None, None, None)
    os.write(STDERR, b"heard\n")
    assert capfd.readouterr().err == "heard\n"


def test_threads_that_decode_images_leave_the_level_of_opencv_as_it_was() -> None:
    level, held, over = cv2.utils.logging.getLogLevel(), threading.Event(), threading.Event()

    def decode() -> None:
        with held_back():
            held.set()
            over.wait(0.2)

    other = threading.Thread(target=decode)
    other.start()
    held.wait()
    with held_back():
        over.set()
        other.join()
    left = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(level)
    assert left == level
