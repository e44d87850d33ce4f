"""Ctrl-C while something runs that ends with it."""

from __future__ import annotations

import signal
import sys
import time
import weakref

import pytest

from edgeflare.cli.interruptible import as_ctrl_c, stopped_by

SIGNALS = [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]


@pytest.mark.parametrize(("how", "word"), SIGNALS)
def test_it_ends_what_runs(how: signal.Signals, word: str) -> None:
    with pytest.raises(KeyboardInterrupt) as ended, as_ctrl_c():
        signal.raise_signal(how)
    assert stopped_by(ended.value) == word


@pytest.mark.parametrize(("how", "word"), SIGNALS)
def test_it_is_not_lost_in_a_callback_out_of_which_nothing_can_be_raised(
    how: signal.Signals, word: str
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
    with pytest.raises(KeyboardInterrupt) as ended, as_ctrl_c():
        work()
    assert stopped_by(ended.value) == word
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
