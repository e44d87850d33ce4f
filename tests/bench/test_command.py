"""`edgeflare bench`, as a user types it."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from edgeflare.cli import main

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


@dataclass(frozen=True)
class Said:
    """What the command answered."""

    code: object
    out: str
    err: str


def bench(*options: str) -> Said:
    """Call the command within this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["edgeflare", "bench", str(EXAMPLE), *options])
        with pytest.raises(SystemExit) as ended:
            main()
    return Said(ended.value.code, out.getvalue(), err.getvalue())


def test_one_command_runs_compares_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "bench"
    options = [
        *("--strategy", "random", "--strategy", "dflare", "--baseline", "dflare"),
        *("--rng-seeds", "0,1"),
        *("--first", "5", "--max-queries", "60", "--out", str(out)),
    ]
    dry = bench(*options, "--dry-run")
    assert dry.code == 0, dry.err
    assert "4 runs" in dry.out
    assert not out.exists()
    older = bench("--strategies", "random,dflare", *options[4:], "--dry-run")
    assert older.out == dry.out

    first = bench(*options)
    assert first.code == 0, first.err
    assert "run 4 of 4: fashion_lenet4/dflare-1" in first.err
    for word in ("random", "dflare", "success %", "mean queries", "× baseline"):
        assert word in first.out
    document = json.loads((out / "bench.json").read_text())
    assert len(document["runs"]) == 4

    refused = bench(*options)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "--resume" in refused.err

    again = bench(*options, "--resume")
    assert again.code == 0, again.err
    assert "run 1 of 4" not in again.err
    assert again.out == first.out
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
    tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    out = tmp_path / "bench"
    said = bench(*options, "--out", str(out))
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert complaint in said.err
    assert not out.exists()
