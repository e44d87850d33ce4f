"""The three arms that answer a query."""

from __future__ import annotations

from enum import Enum


class Arm(str, Enum):
    """One of the three that answer: the original *f*, the twin *h*, the device *g*."""

    ORIGINAL = "original"
    TWIN = "twin"
    DEVICE = "device"

    def __str__(self) -> str:
        return self.value
