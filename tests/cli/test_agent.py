"""`edgeflare agent serve`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from edgeflare.cli.agent import serve


def test_an_agent_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Context:
        args = ("--help",)

    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _program, command: started.append(command))
    serve(Context())  # type: ignore[arg-type]
    for name in ("argparse.py", "grpc.py", "runpy.py", "edgeflare_agent.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the working directory')")
    said = subprocess.run(
        started[0], cwd=tmp_path, check=False, timeout=300, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    assert "usage: edgeflare-agent" in said.stdout
