"""Seed inputs, of whatever domain, and which of a file or a folder are taken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Seeds:
    """Seed inputs, in the shape that the models take.

    Attributes:
        inputs: (N, *shape) in the dtype of their domain.
        labels: (N,) int64, or None; -1 means unlabelled. As a domain loads them, there may be
            several for each seed, (N, several), or some beyond the classes, see `require_truths`.
        names: one for each input: its file's name, or its position in the `.npz`.
        fixed: what the models take beside an input, which no search changes: (N, *shape) each, by
            the name of the model's input in `pair.toml`.
        ids: positions of the seeds among all of the pair; empty where they are 0, 1, ….
        notes: what was assumed of them, a line each for the user.
        targets: (N, *shape) what is right in the shape of the task's answers, or None; see
            `Decoder.target`.
        folders: the name of the sub-folder in which each one's file lies; empty where they lie in
            none.

    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64] | None
    names: tuple[str, ...]
    fixed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    ids: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    targets: NDArray[np.generic] | None = None
    folders: tuple[str, ...] = ()

    _places: Mapping[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare to look seeds up by their ids."""
        object.__setattr__(self, "_places", {id_: at for at, id_ in enumerate(self.ids)})

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def seed_ids(self) -> Sequence[int]:
        """The ids of the seeds, in their order."""
        return self.ids or range(len(self))

    @property
    def sha256(self) -> str:
        """The digest of the inputs, unchanged; they may be most of what memory there is."""
        digest = hashlib.sha256(str(self.inputs.shape).encode())
        digest.update(np.ascontiguousarray(self.inputs).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def place(self, seed_id: int) -> int:
        """Return where a seed is among these.

        Raises:
            KeyError: it is none of them.

        """
        return self._places[seed_id] if self.ids else seed_id

    def input_of(self, seed_id: int) -> Any:
        """Return the input of a seed, by its id."""
        return self.inputs[self.place(seed_id)]

    def labels_of(self, seed_ids: Iterable[int]) -> NDArray[np.int64] | None:
        """Return the labels of some seeds, (seeds,); None where there are none."""
        return None if self.labels is None else self.labels[[*map(self.place, seed_ids)]]


def is_labelled(labels: NDArray[np.int64], classes: int) -> NDArray[np.bool_]:
    """Return which labels are known: (N,) bool."""
    known: NDArray[np.bool_] = (labels >= 0) & (labels < classes)
    return known


def is_label(label: int | None, classes: int) -> bool:
    """Tell whether a label is known: one outside 0 … classes - 1 means unlabelled."""
    return label is not None and 0 <= label < classes


_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ divided by the golden ratio."""


@dataclass(frozen=True, slots=True)
class SeedChoice:
    """Which of some seeds are taken, whatever the run seed.

    Attributes:
        limit: how many: of each label its share, the first of it; without labels evenly through
            all. What a smaller number takes, a larger one takes too. None for all.
        first: how many from the beginning, whatever their labels; None for all. Not both.

    """

    limit: int | None = None
    first: int | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it leaves out nothing, however many seeds there are."""
        return self.limit is None and self.first is None

    def places(self, count: int, labels: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the positions of the seeds that are taken, rising.

        Args:
            count: number of all seeds.
            labels: (count,), a negative one means unlabelled; or None. Several for each seed are
                no classes, and count as none.

        Returns:
            (taken,) int64.

        """
        if self.first is not None:
            return np.arange(min(self.first, count))
        if self.limit is None or self.limit >= count:
            return np.arange(count)
        return np.sort(spread_order(count, labels, self.limit))


ALL_SEEDS: Final = SeedChoice()
"""Takes every seed."""


def spread_order(
    count: int, labels: NDArray[np.int64] | None, taken: int | None = None
) -> NDArray[np.int64]:
    """Return positions of seeds in an order whose every beginning is what a limit takes.

    Args:
        count: number of all seeds.
        labels: as for `SeedChoice.places`.
        taken: how many from its beginning, `count` at most; None for all.

    Returns:
        (taken,) int64.

    """
    order, taken = _evenly(count), count if taken is None else taken
    groups = [] if labels is None or labels.ndim > 1 else _groups(labels)
    return _in_shares(groups, order, taken) if len(groups) > 1 else order[:taken]


def take(rows: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    """Return the rows at some positions; the same array where these are all of it."""
    return rows if len(places) == len(rows) else rows[places]


def ids_of(places: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the ids of the seeds at some positions as `Seeds` has them: none where 0, 1, …."""
    return () if np.array_equal(places, np.arange(len(places))) else tuple(places.tolist())


def _groups(labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the positions of each label's seeds, in the order in which they are taken."""
    known = np.maximum(labels, -1)
    order = np.argsort(known, kind="stable")
    values, begins = np.unique(known[order], return_index=True)
    groups = np.split(order, begins[1:])
    if values[0] < 0:  # of what has no label
        groups[0] = groups[0][_evenly(len(groups[0]))]
    return groups


def _in_shares(
    groups: list[NDArray[np.int64]], evenly: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return the first positions of an order in which each beginning has of each group its share.

    Of the first h of it, a group with n of all N seeds has n h / N, rounded up or down: its kth
    seed comes after k N / n places, and by (k + 1) N / n (the quota method, M. L. Balinski and
    H. P. Young, 1975). So what is due first is taken first.
    """
    total, rank = len(evenly), np.argsort(evenly)
    waiting: list[tuple[int, int, int]] = []
    due: list[tuple[int, int, int, int]] = []

    def wait(group: int, k: int) -> None:
        if k < len(groups[group]):
            heappush(waiting, (k * total // len(groups[group]) + 1, group, k))

    for group in range(len(groups)):
        wait(group, 0)
    order = np.empty(count, np.int64)
    for at in range(count):
        while waiting and waiting[0][0] <= at + 1:
            _, group, k = heappop(waiting)
            place = groups[group][k]
            heappush(due, (-(-(k + 1) * total // len(groups[group])), int(rank[place]), group, k))
        *_, group, k = heappop(due)
        order[at] = groups[group][k]
        wait(group, k + 1)
    return order


def _evenly(count: int) -> NDArray[np.int64]:
    """Return the positions 0 … count - 1 in an order whose every beginning is spread evenly.

    They are sorted by where a walk around the circle is at each of them, with steps of the golden
    ratio. Of what a beginning takes, neighbours are at most twice as far apart as on average.
    """
    turns = np.arange(count, dtype=np.uint64) * _GOLDEN  # modulo 2⁶⁴: around the circle
    return np.argsort(turns, kind="stable")
