"""`edgeflare bench`, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.cli import main

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgeflare", "bench", str(EXAMPLE), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_one_command_runs_compares_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "bench"
    options = [
        *("--strategy", "random", "--strategy", "dflare", "--baseline", "dflare"),
        *("--rng-seeds", "0,1"),
        *("--limit", "5", "--max-queries", "60", "--out", str(out)),
    ]
    dry = bench(*options, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "4 runs" in dry.stdout
    assert not out.exists()
    older = bench("--strategies", "random,dflare", *options[4:], "--dry-run")
    assert older.stdout == dry.stdout

    first = bench(*options)
    assert first.returncode == 0, first.stderr
    assert "run 4 of 4: fashion_lenet4/dflare-1" in first.stderr
    for word in ("random", "dflare", "success %", "mean queries", "× baseline"):
        assert word in first.stdout
    document = json.loads((out / "bench.json").read_text())
    assert len(document["runs"]) == 4

    refused = bench(*options)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "--resume" in refused.stderr

    again = bench(*options, "--resume")
    assert again.returncode == 0, again.stderr
    assert "run 1 of 4" not in again.stderr
    assert again.stdout == first.stdout
    assert json.loads((out / "bench.json").read_text()) == document


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--strategies", "random,"), "--strategies 'random,'"),
        (("--strategies", "rando"), "did you mean 'random'"),
        (("--strategy", "rando"), "did you mean 'random'"),
        (("--strategy", "random", "--strategy", "random"), "--strategy random: named 2 times"),
        (("--rng-seeds", "0,x"), "--rng-seeds 'x'"),
        ((str(EXAMPLE),), "fashion_lenet4: named 2 times"),
        (("--min-strength", "0.1"), "No such option: --min-strength"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    complaint: str,
) -> None:
    out = tmp_path / "bench"
    command = ["edgeflare", "bench", str(EXAMPLE), *options, "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert complaint in said
    assert not out.exists()
