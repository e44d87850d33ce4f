"""Exported findings unpacked, and their scripts run as somebody does who was sent one."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack an export into a folder, and return that."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


def reproduce(
    folder: Path, python: str | Path = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run the script of an unpacked export, by this Python or another."""
    return subprocess.run(
        [python, "-I", "reproduce.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
