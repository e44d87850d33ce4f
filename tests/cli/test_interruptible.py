"""Ctrl-C while something runs that ends with it."""

from __future__ import annotations

import signal
import sys
import time
import weakref

import pytest

from edgeflare.cli.interruptible import as_ctrl_c


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_what_runs(how: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), as_ctrl_c():
        signal.raise_signal(how)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_is_not_lost_in_a_callback_out_of_which_nothing_can_be_raised(
    how: signal.Signals,
) -> None:
    def interrupted(_gone: object) -> None:
        signal.raise_signal(how)
        time.sleep(0)  # where Python heeds it

    def work() -> None:
        thing = {1}
        reference = weakref.ref(thing, interrupted)
        del thing
        assert reference() is None
        time.sleep(10)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), as_ctrl_c():
        work()
    assert time.monotonic() - begun < 5


def test_what_else_cannot_be_raised_is_told_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError("a mistake")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
        with as_ctrl_c():
            broken = Broken()
            del broken
        assert sys.unraisablehook is sys.__unraisablehook__
    assert "a mistake" in capsys.readouterr().err
