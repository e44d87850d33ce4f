"""What a repair gives, in words."""

from __future__ import annotations

from typing import Any

import pytest

from edgeflare.release.figures.check_figures import MendedInputs, MendFigures

HELD_OUT = MendedInputs(inputs=50, before=9, after=4, mended=6, broken=1)
NEAR = MendedInputs(inputs=4000, before=1500, after=500, mended=1200, broken=200)


def mended(**known: Any) -> MendFigures:
    own: dict[str, Any] = {
        "folder": "mend",
        "candidate": "ranges",
        "written": True,
        "why": "",
        "deviating": HELD_OUT,
        "wrong": None,
        "near": NEAR,
        "beyond": (),
        "near_beyond": None,
    }
    return MendFigures(**{**own, **known})


def test_a_gain_has_its_interval() -> None:
    wrong = MendedInputs(inputs=50, before=12, after=7, mended=5, broken=0)
    found = mended(wrong=wrong)
    assert found.gain is not None
    assert (found.gain.value, found.gain.inputs) == (0.1, 50)
    assert found.gain.low < 0.1 < found.gain.high
    assert found.in_words().startswith(
        "`repair` at equal cost: accuracy 86.0% instead of 76.0% on 50 held-out inputs (a gain of"
    )
    near = "; of 1,500 that deviate near the boundary it mends 1,200 and breaks 200"
    assert found.in_words().endswith(near)
    assert "agreement 92.0% instead of 82.0%" in mended().in_words()


@pytest.mark.parametrize("beyond", [(), ("--max-latency none",)])
def test_what_is_not_written_has_a_reason_and_no_gain(beyond: tuple[str, ...]) -> None:
    near = 80 if beyond else None
    found = mended(written=False, why="no candidate gains", beyond=beyond, near_beyond=near)
    assert found.gain is None
    words = found.in_words()
    assert words.startswith("`repair` does not mend it at equal cost: no candidate gains")
    assert words.endswith("; 80 deviate beyond that cost, --max-latency none") is bool(beyond)
