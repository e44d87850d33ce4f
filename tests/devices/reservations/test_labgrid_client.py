"""What is asked of labgrid's client, which a script stands for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeflare.devices.reservations.labgrid import LabgridReservation

CLIENT = """\
#!/bin/sh
echo "$3" >> "$ASKED"
[ "$3" = acquire ] || exit 0
sleep 0.5
kill -INT $PPID
sleep 0.5
[ "$HAS_IT" = no ] && exit 0
echo "labgrid-client: Error: You have already acquired place $2."
exit 1
"""
"""Acquires a place, unless the user has it, and is asked to stop meanwhile."""


@pytest.mark.parametrize("before", ["no", "yes"])
def test_ctrl_c_gives_back_what_was_acquired_and_nothing_that_the_user_had_before(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "labgrid-client").write_text(CLIENT)
    (tmp_path / "labgrid-client").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("HAS_IT", before)
    with pytest.raises(KeyboardInterrupt):
        LabgridReservation("board").reserve()
    released = (tmp_path / "asked").read_text().split()[1:]
    assert released == (["release"] if before == "no" else [])
