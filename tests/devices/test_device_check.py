"""The check of a device, what an NPU needs, what of a processor counts, and a slow link."""

from __future__ import annotations

from concurrent.futures import Future
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.cli.doctor import check_npu
from edgeflare.devices import device_check
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.provenance import features_for_kernels
from edgeflare.devices.session import DeviceSession
from edgeflare.devices.stream import DelayLine


@pytest.mark.slow
def test_a_device_that_is_well_passes() -> None:
    checked = device_check.check_device(find_profile("emulated-builtin"))
    assert checked.provenance.total_nodes == 1


@pytest.mark.slow
def test_the_stream_alone_says_when_an_answer_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so in a line for the user; a future that is waited for with a limit does not."""
    limits: list[object] = []

    class Lost(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            limits.append(timeout)
            raise DeviceLost("board: no answer to 3 inputs within 90 s")

    monkeypatch.setattr(DeviceSession, "submit", lambda *_: Lost())
    with pytest.raises(DeviceLost, match="no answer to 3 inputs"):
        device_check.check_device(find_profile("emulated-builtin"))
    assert limits == [None]


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_nothing_here_passes_for_an_npu() -> None:
    """The runtime's own package has Intel's dispatch library, which alone is none."""
    assert metadata.version("ai-edge-litert")
    check = check_npu()
    assert (check.found, check.needed) == ("", False)
    assert "\n" not in check.mend
    for vendor in ("intel", "qualcomm", "mediatek", "google-tensor"):
        assert vendor in check.mend


EPYC = (
    "3dnowprefetch abm adx aes amd_ppin apic arat avx avx2 bmi1 bmi2 bpext clflush clwb clzero cmov"
    " cx16 cx8 de erms f16c fma fpu fsgsbase fxsr ht lahf_lm lm mca mce mmx movbe msr mtrr nx pae"
    " pat pclmulqdq pge pni popcnt pse rdrand rdseed sep sha_ni smap smep sse sse2 sse4_1 sse4_2"
    " sse4a ssse3 svm syscall topoext tsc umip vaes vme xsave xsavec"
)
CORTEX_A76 = (
    "aes asimd asimddp asimdhp asimdrdm atomics cpuid crc32 dcpop evtstrm fp fphp lrcpc pmull sha1"
    " sha2 ssbs"
)


def test_what_decides_kernels_is_kept_and_the_rest_is_not() -> None:
    assert features_for_kernels(EPYC.split()) == ("sse4_1", "avx", "f16c", "fma", "avx2")
    assert features_for_kernels(CORTEX_A76.split()) == ("asimd", "fphp", "asimdhp", "asimddp")
    assert features_for_kernels(()) == ()


class Clock:
    """A clock on which time passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def arrivals(delay: float, departures: list[float]) -> list[tuple[float, int]]:
    """When which item comes out, by the virtual clock."""
    clock = Clock()
    line: DelayLine[int] = DelayLine(delay, lambda: clock.now, clock.sleep)
    for index, departure in enumerate(departures):
        clock.now = departure
        line.put(index)
    line.close()
    clock.now = 0.0
    return [(clock.now, index) for index in line]


def test_items_that_leave_together_arrive_together() -> None:
    assert arrivals(0.02, [0.0] * 100) == [(0.02, index) for index in range(100)]


@given(delay=st.floats(0, 10), departures=st.lists(st.floats(0, 100), min_size=1).map(sorted))
def test_each_item_arrives_the_delay_after_it_left(delay: float, departures: list[float]) -> None:
    expected = [(departure + delay, index) for index, departure in enumerate(departures)]

    came = arrivals(delay, departures)

    assert [index for _, index in came] == [index for _, index in expected]
    assert [time for time, _ in came] == pytest.approx([time for time, _ in expected])


def test_without_delay_nothing_sleeps() -> None:
    assert arrivals(0.0, [0.0, 0.0]) == [(0.0, 0), (0.0, 1)]
