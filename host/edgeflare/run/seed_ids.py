"""Ids of some seeds of a pair, as users write them: `0:50,60,70:80`; and whose device is whose."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError
from edgeflare.outside_text import read_lines
from edgeflare.record.json_types import Text

_LARGEST = 2**53 - 1
"""Every reader of JSON keeps it."""

_MOST_BYTES = 2**25
"""Largest file of ids that is read, in bytes: four million ids need as much."""

_ONE_OR_RANGE = re.compile(r"([0-9]{1,16})(?::([0-9]{1,16}))?")
_LOOKS_LIKE_IDS = re.compile(r"[0-9:,\s]*")
_EXPECTED = "expected ids and ranges without their end, separated by commas, such as 0:50,60"


class SeedIds(Text):
    """Ids of seeds, each once and in rising order.

    Attributes:
        ranges: begin and end of each range, the end not in it; rising, and none touches the next.

    """

    __slots__ = ("_before", "ranges")

    def __init__(self, ranges: tuple[tuple[int, int], ...]) -> None:
        """Take the ranges, and count the ids before each."""
        self.ranges: Final = ranges
        sizes = (end - begin for begin, end in ranges)
        self._before: Final = tuple(accumulate(sizes, initial=0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeedIds) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return hash(self.ranges)

    def __repr__(self) -> str:
        return f"SeedIds.read({str(self)!r})"

    @classmethod
    def first(cls, count: int) -> SeedIds:
        """Return the ids 0, 1, … of so many seeds."""
        return cls(((0, count),) if count else ())

    @classmethod
    def of(cls, ids: Iterable[int]) -> SeedIds:
        """Return the ids of a collection, in whatever order."""
        return cls._joined((id_, id_ + 1) for id_ in ids)

    @classmethod
    def read(cls, text: str) -> SeedIds:
        """Return the ids that `str` wrote, or that a user did.

        Raises:
            UserError: it says something else, or names no seed.

        """
        ranges = []
        for part in dict.fromkeys(filter(None, re.split(r"[,\s]+", text))):
            found = _ONE_OR_RANGE.fullmatch(part)
            begin = int(found[1]) if found else -1
            end = int(found[2]) if found and found[2] else begin + 1
            if not 0 <= begin < end <= _LARGEST:
                raise UserError(f"--seed-ids {part[:60]!r}: {_EXPECTED}")
            ranges.append((begin, end))
        if not ranges:
            raise UserError(f"--seed-ids {text[:60]!r} names no seed: {_EXPECTED}")
        return cls._joined(ranges)

    @classmethod
    def read_option(cls, given: str) -> SeedIds:
        """Return the ids that a command-line option gives: themselves, or a file of them.

        In a file, lines separate them as commas do, and what follows a # is a comment.

        Raises:
            UserError: it is neither, or names no seed.

        """
        if _LOOKS_LIKE_IDS.fullmatch(given):
            return cls.read(given)
        try:
            lines = read_lines(Path(given), _MOST_BYTES)
        except (OSError, UserError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UserError(
                f"--seed-ids {given!r}: {_EXPECTED}, or a file of them ({why})"
            ) from None
        return cls.read(",".join(line.partition("#")[0] for line in lines))

    @classmethod
    def _joined(cls, ranges: Iterable[tuple[int, int]]) -> SeedIds:
        joined: list[tuple[int, int]] = []
        for begin, end in sorted(ranges):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((begin, end))
        return cls(tuple(joined))

    def __str__(self) -> str:
        """Return the ids as `read` takes them."""
        return ",".join(
            str(begin) if end == begin + 1 else f"{begin}:{end}" for begin, end in self.ranges
        )

    def __iter__(self) -> Iterator[int]:
        """Yield each id, in rising order."""
        return (seed_id for begin, end in self.ranges for seed_id in range(begin, end))

    def __len__(self) -> int:
        """Return how many ids there are."""
        return sum(end - begin for begin, end in self.ranges)

    def __contains__(self, seed_id: object) -> bool:
        """Tell whether an id is among them."""
        if not isinstance(seed_id, int):
            return False
        at = bisect_right(self.ranges, (seed_id, _LARGEST + 1)) - 1
        return at >= 0 and seed_id < self.ranges[at][1]

    def __or__(self, other: SeedIds) -> SeedIds:
        """Return the ids of both."""
        return self._joined((*self.ranges, *other.ranges))

    def place(self, seed_id: int) -> int:
        """Return how many of them are smaller than one of them.

        Raises:
            KeyError: it is none of them.

        """
        at = bisect_right(self.ranges, (seed_id, _LARGEST + 1)) - 1
        if at < 0 or seed_id >= self.ranges[at][1]:
            raise KeyError(seed_id)
        return self._before[at] + seed_id - self.ranges[at][0]

    @property
    def last(self) -> int:
        """The largest id."""
        return self.ranges[-1][1] - 1


def device_of(seed_id: int, devices: int) -> int:
    """Return which of so many devices a seed is given to."""
    return seed_id % devices
