"""Wishes to stop: the first, and the next."""

from __future__ import annotations

import errno
import signal

import pytest

from edgeflare.cli.interruptible import interruptible_once, resumable_work, stopped_by
from edgeflare.errors import InfrastructureError

WISHES = [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]


@pytest.mark.parametrize(("number", "name"), WISHES)
def test_the_second_wish_to_stop_ends_what_is_waited_for(
    number: signal.Signals, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def waits() -> None:
        with interruptible_once("waiting") as interrupt:
            signal.raise_signal(number)
            assert interrupt.asked()
            said = capsys.readouterr().err
            assert f"stopping at {name}: waiting; {name} again stops at once" in said
            signal.raise_signal(number)
            pytest.fail("it went on to wait")

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt) as stop:
        waits()
    assert stopped_by(stop.value) == name
    assert signal.getsignal(number) is before


def test_what_a_full_disk_cut_off_goes_on() -> None:
    with (
        pytest.raises(InfrastructureError, match=r"No space left.*--resume goes on"),
        resumable_work(),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", "repair.json")
