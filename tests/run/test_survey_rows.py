"""What a journal keeps of a survey."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.journal import Journal
from edgeflare.run.survey_rows import DeviceRow, HostRow

_numbers = st.floats(allow_nan=False, width=32)
_whole = st.integers(-1, 2**31)
_items = st.integers(0, 2**31)
_seconds = st.floats(0, allow_infinity=False, width=32)
hosts = st.builds(
    HostRow,
    item=_items,
    input_crc32=_whole,
    compression=st.booleans(),
    compression_tied=st.booleans(),
    doubtful=st.booleans(),
    margin=_numbers,
    original_decision=_whole,
    twin_decision=_whole,
    twin_distance=st.none() | _numbers,
    seconds=_seconds,
    known=st.booleans(),
    original_right=st.booleans(),
    twin_right=st.booleans(),
    original_truth_distance=st.none() | _numbers,
    twin_truth_distance=st.none() | _numbers,
)
devices = st.builds(
    DeviceRow,
    item=_items,
    deviates=st.booleans(),
    deviates_tied=st.booleans(),
    kernel=st.booleans(),
    kernel_tied=st.booleans(),
    failed=st.booleans(),
    tied=st.booleans(),
    kind=st.none() | st.sampled_from(["deviation", "crash"]),
    strength=st.none() | _numbers,
    device_decision=_whole,
    device_distance=st.none() | _numbers,
    seconds=_seconds,
    device_right=st.booleans(),
    device_truth_distance=st.none() | _numbers,
)


@given(
    st.lists(hosts, unique_by=lambda row: row.item, max_size=5),
    st.lists(devices, unique_by=lambda row: row.item, max_size=5),
)
def test_rows_are_read_as_they_were_written(
    tmp_path_factory: object, host: list[HostRow], device: list[DeviceRow]
) -> None:
    folder: Path = tmp_path_factory.mktemp("rows")  # type: ignore[attr-defined]
    journal = Journal.create(folder / "run.db", {})
    with journal.transaction():
        journal.survey.write_host(host)
        journal.survey.write_device(device)
    journal.close()
    again = Journal.open(folder / "run.db")
    assert again.survey.host() == sorted(host, key=lambda row: row.item)
    assert again.survey.device() == sorted(device, key=lambda row: row.item)
    assert again.survey.host_items() == {row.item for row in host}
    assert again.survey.device_items() == {row.item for row in device}
    assert again.survey.checksums() == {row.item: row.input_crc32 for row in host}
    assert (again.survey.host_count(), again.survey.device_count()) == (len(host), len(device))
    again.close()


def test_a_journal_without_a_survey_has_no_rows(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "run.db", {})
    assert not journal.survey.host()
    assert not journal.survey.device_items()
    assert journal.survey.host_count() == journal.survey.device_count() == 0
    journal.close()


def test_dropped_rows_are_gone(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "run.db", {})
    flags = (True, False, True, False, False, False)
    row = DeviceRow(7, *flags, "deviation", 0.5, 3, None, 0.1, False, None)
    with journal.transaction():
        journal.survey.write_device([row])
        journal.survey.drop_device([7, 8])
    assert not journal.survey.device()
    journal.close()
