"""What was seen of the devices of several runs, as of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Readings = Mapping[str, Any]
"""What a journal keeps of one device; see `campaign.health.health_record`."""


def merged_health(noted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was seen in all runs: the devices by their places in the plan, each line once.

    Args:
        noted: what the journal of each run keeps of the health of its devices, in the order in
            which the first and the last reading count.

    """
    devices = [one["devices"] for one in noted if one.get("devices")]
    lines = [line for one in noted for line in one.get("warnings", ())]
    return {
        "devices": [_of_one_device(readings) for readings in zip(*devices, strict=False)],
        "warnings": list(dict.fromkeys(lines)),
    }


def _of_one_device(readings: Sequence[Readings]) -> dict[str, Any]:
    canaries: Counter[str] = Counter()
    for one in readings:
        canaries.update(one["canaries"])
    return {
        "temperatures": _ranges([one["temperatures"] for one in readings]),
        "frequencies": _ranges([one["frequencies"] for one in readings]),
        "canaries": dict(canaries),
        "pauses": sum(one["pauses"] for one in readings),
        "paused_seconds": sum(one["paused_seconds"] for one in readings),
        "failed": any(one["failed"] for one in readings),
    }


def _ranges(seen: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    ranges: dict[str, dict[str, float]] = {}
    for zones in seen:
        for name, now in zones.items():
            before = ranges.setdefault(name, dict(now))
            before |= {
                "min": min(before["min"], now["min"]),
                "max": max(before["max"], now["max"]),
                "last": now["last"],
            }
    return ranges
