"""Wishes to stop: the first, and the next."""

from __future__ import annotations

import signal

import pytest

from edgeflare.cli.interruptible import interruptible_once, stopped_by

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
