"""Which system of reservations a profile names, and when what it lends is given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.devices.profile import Profile
from edgeflare.devices.reservations import reservation
from edgeflare.devices.reservations.reservation import Reservation, reserved
from edgeflare.errors import InfrastructureError, UserError


class Diary:
    """A system of reservations that writes down what is asked of it."""

    def __init__(self, *, lends: bool = True) -> None:
        self.said: list[str] = []
        diary = self

        class Written(Reservation):
            def reserve(self) -> bool:
                diary.said.append(f"reserve {self.place}")
                return lends

            def release(self) -> None:
                diary.said.append(f"release {self.place}")

        self.system = Written

    def find(self, name: str) -> type[Reservation]:
        assert name == "diary"
        return self.system


def board(said: str | None) -> Profile:
    return Profile(name="board", transport="emulated", reservation=said)


@pytest.mark.parametrize("lends", [True, False])
def test_what_is_lent_is_given_back_also_after_an_error(
    lends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Diary(lends=lends)
    monkeypatch.setattr(reservation, "reservation_systems", diary)

    def use() -> None:
        with reserved(board("diary:shelf:3")):
            assert diary.said == ["reserve shelf:3"]
            raise InfrastructureError("the device is gone")

    with pytest.raises(InfrastructureError, match="is gone"):
        use()
    assert diary.said == ["reserve shelf:3", *(["release shelf:3"] if lends else [])]


def test_what_cannot_be_given_back_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    diary = Diary()

    def refused(_: Reservation) -> None:
        raise InfrastructureError("the coordinator is gone")

    monkeypatch.setattr(diary.system, "release", refused)
    monkeypatch.setattr(reservation, "reservation_systems", diary)
    with reserved(board("diary:shelf")):
        pass
    assert capsys.readouterr().err == "edgeflare: warning: board: the coordinator is gone\n"


def test_without_a_reservation_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation, "reservation_systems", None)
    with reserved(board(None)):
        pass


def test_an_unknown_system_is_named_with_those_that_there_are() -> None:
    with (
        pytest.raises(UserError, match=r"unknown system of reservations 'labgird'.*labgrid"),
        reserved(board("labgird:board-1")),
    ):
        pass


def test_without_labgrid_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(UserError, match="board: labgrid-client is not on PATH: pip install"),
        reserved(board("labgrid:board-1")),
    ):
        pass
