"""Ways to tell whether a state is new, side by side: microseconds for each state of a chain.

    python benchmarks/novelty.py

Two streams of states of two arms with ten classes each. In `walk`, each state is a small step from
one of the last, as a chain's mutants are; in `scattered`, states have nothing to do with each
other. Every state is stored, as `dflare` does. The last column is the share of answers that equal
the exact ones. FLANN's index is rebuilt every five states, as in DFlare's published code, since
OpenCV's Python binding cannot add to one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.strategies.dflare import NOVELTY_THRESHOLD, SeenStates

SIZES = (100, 1000, 3000)
CLASSES = 10

Stream = NDArray[np.float64]


class Store(Protocol):
    """What `SeenStates` can do."""

    def is_new(self, state: Stream) -> bool:
        """Whether no stored state is near."""

    def add(self, state: Stream) -> None:
        """Store a state."""


class Exact:
    """The distance to every state, by differences."""

    def __init__(self) -> None:
        self._rows = np.empty((max(SIZES), 2 * CLASSES))
        self._count = 0

    def is_new(self, state: Stream) -> bool:
        """Whether no stored state is near."""
        apart = self._rows[: self._count] - state
        return bool(np.einsum("ij,ij->i", apart, apart).min(initial=np.inf) > NOVELTY_THRESHOLD)

    def add(self, state: Stream) -> None:
        """Store a state."""
        self._rows[self._count] = state
        self._count += 1


class Product(Exact):
    """The distance to every state, by one matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self._squares = np.empty(max(SIZES))

    def is_new(self, state: Stream) -> bool:
        """Whether no stored state is near."""
        products = self._rows[: self._count] @ state
        nearest = (self._squares[: self._count] - 2 * products).min(initial=np.inf)
        return bool(nearest + state @ state > NOVELTY_THRESHOLD)

    def add(self, state: Stream) -> None:
        """Store a state."""
        self._squares[self._count] = state @ state
        super().add(state)


class Flann:
    """An approximate kd-tree over all but the last few states."""

    buffer_size = 5

    def __init__(self) -> None:
        self._rows: list[Stream] = []
        self._buffered = 0
        self._index: cv2.flann.Index | None = None

    def is_new(self, state: Stream) -> bool:
        """Whether no stored state is near."""
        buffer = self._rows[len(self._rows) - self._buffered :]
        nearest = min((float(((state - row) ** 2).sum()) for row in buffer), default=np.inf)
        if self._index is not None:
            _, distances = self._index.knnSearch(state[None].astype(np.float32), 1, params={})
            nearest = min(nearest, float(distances[0, 0]))
        return nearest > NOVELTY_THRESHOLD

    def add(self, state: Stream) -> None:
        """Store a state."""
        self._rows.append(state)
        self._buffered += 1
        if self._buffered >= self.buffer_size:
            rows = np.array(self._rows, dtype=np.float32)
            self._index = cv2.flann.Index(rows, {"algorithm": 1, "trees": 4})
            self._buffered = 0


WAYS: dict[str, Callable[[], Store]] = {
    "exact, newest first (ours)": SeenStates,
    "exact, all at once": Exact,
    "exact, matrix product": Product,
    "FLANN kd-tree of OpenCV": Flann,
}


def main() -> None:
    rng = np.random.default_rng(0)
    streams = {"walk": walk(rng), "scattered": scattered(rng)}
    print("| stream | states | way | µs for each state | as exact |\n|---|---|---|---|---|")
    for kind, stream in streams.items():
        for size in SIZES:
            exact, _ = judge(Exact(), stream[:size])
            for name, make in WAYS.items():
                answers, microseconds = judge(make(), stream[:size])
                same = np.mean(np.array(answers) == np.array(exact))
                print(f"| {kind} | {size} | {name} | {microseconds:.1f} | {same:.2%} |")


def judge(store: Store, stream: Stream) -> tuple[list[bool], float]:
    """Return whether each state was new, and the microseconds that each took."""
    answers = []
    began = time.perf_counter()
    for state in stream:
        answers.append(store.is_new(state))
        store.add(state)
    return answers, (time.perf_counter() - began) / len(stream) * 1e6


def walk(rng: np.random.Generator) -> Stream:
    logits = rng.normal(0.0, 2.0, CLASSES)
    states = []
    for _ in range(max(SIZES)):
        mutant = logits + rng.normal(0.0, 0.5, CLASSES)
        states.append(
            np.concatenate((softmax(mutant), softmax(mutant + rng.normal(0.0, 0.02, CLASSES))))
        )
        if rng.random() < 0.1:
            logits = mutant
    return np.array(states)


def scattered(rng: np.random.Generator) -> Stream:
    both = rng.normal(0.0, 3.0, (max(SIZES), 2, CLASSES))
    return np.array([np.concatenate([softmax(logits) for logits in pair]) for pair in both])


def softmax(logits: Stream) -> Stream:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


if __name__ == "__main__":
    main()
