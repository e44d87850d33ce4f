"""Which of several devices a seed is given to."""

from __future__ import annotations


def device_of(seed_id: int, devices: int) -> int:
    """Return which of so many devices a seed is given to."""
    return seed_id % devices
