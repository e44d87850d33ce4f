"""Hosts and devices that worked on a run beside its first."""

from __future__ import annotations

from typing import Final

from edgeflare.run.journal import RunJournal
from edgeflare.run.run_differences import differences
from edgeflare.run.run_header import RunHeader

OTHER_HOSTS_KEY: Final = "other_hosts"
"""The key of `about` under which the journal has a line for each difference."""

SEVERAL_DEVICES: Final = "several devices that are alike answered under the name of the first"


def note_other_host(journal: RunJournal, begun: RunHeader, other: RunHeader) -> None:
    """Note in the journal of a run that another host worked on it, where that may matter."""
    known = journal.about().get(OTHER_HOSTS_KEY, [])
    if new := [line for line in other_host_lines(begun, other) if line not in known]:
        journal.note(OTHER_HOSTS_KEY, [*known, *new])


def note_other_devices(journal: RunJournal, begun: RunHeader, other: RunHeader) -> None:
    """Note in the journal of a run that devices of other names go on with it."""
    if begun.plan.devices == other.plan.devices:
        return
    names = "; ".join(", ".join(one.plan.devices) for one in (begun, other))
    line = f"{SEVERAL_DEVICES}: {names}"
    known = journal.about().get(OTHER_HOSTS_KEY, [])
    if line not in known:
        journal.note(OTHER_HOSTS_KEY, [*known, line])


def other_host_lines(one: RunHeader, other: RunHeader) -> list[str]:
    """Return a line for each difference of two hosts by which they may answer differently."""
    return [
        f"several hosts worked on this run, which differ in {apart.name} ({apart.one},"
        f" {apart.other}): original and twin may have answered differently on each"
        for apart in differences(one, other)
        if apart.of == "host"
    ]
