"""The limits of gates: which of several counts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.check.gate_limits import LIMITS, read_limits
from edgeflare.errors import UserError


def test_the_user_limits_take_the_place_of_the_others() -> None:
    limits = read_limits(["accuracy-drop<2%", "changed <= .1", "faults < inf"])
    assert limits["accuracy-drop"] == 0.02
    assert limits["changed"] == 0.1
    assert limits["net-harm"] == LIMITS["net-harm"].limit
    assert "faults" not in limits
    assert "changed" not in read_limits([])


def test_limits_of_a_team_count_before_those_of_a_pair_and_the_command_before_both(
    tmp_path: Path,
) -> None:
    team = tmp_path / "team.toml"
    team.write_text("[gates]\naccuracy-drop = 0.03\nnet-harm = 0.03\nchanged = 0.1\n")
    of_pair = {"net-harm": 0.5, "class-loss": 0.5}
    limits = read_limits(["changed<0.2"], of_pair, team)
    assert [limits[name] for name in ("accuracy-drop", "net-harm", "changed", "class-loss")] == [
        *(0.03, 0.03, 0.2, 0.5)
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "has no limits: write [gates] above them"),
        ("accuracy-drop = 0.03", "unknown key accuracy-drop; keys are gates"),
        ("[gates]\naccuracy = 0.1", "there is no gate 'accuracy' (did you mean"),
        ("[gates]\nnet-harm = -1", "net-harm: -1.0 is no number from 0 up"),
    ],
)
def test_a_file_of_a_team_is_refused_in_one_line(tmp_path: Path, written: str, said: str) -> None:
    team = tmp_path / "team.toml"
    team.write_text(written)
    with pytest.raises(UserError) as refused:
        read_limits([], {}, team)
    assert str(refused.value).startswith(str(team))
    assert said in str(refused.value)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_limits([], {}, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("accuracy<0.1", "no gate 'accuracy' (did you mean 'accuracy-drop'?)"),
        ("net-harm", "expected NAME<NUMBER"),
        ("net-harm<-1", "no number from 0 up"),
        ("net-harm<1e", "no number from 0 up"),
        ("accuracy-drop<5", "'5' is more than all: give a share, such as 0.05"),
    ],
)
def test_what_is_no_gate_is_refused(given: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        read_limits([given])
    assert said in str(refused.value)
