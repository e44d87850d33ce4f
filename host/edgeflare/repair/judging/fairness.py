"""How alike a classifier treats two groups of inputs: accuracy, and three measures of fairness.

SPD, AAOD and EOD are those of Equations 9 to 11 of FMT (see `post_training`), of the group whose
values of the attribute come first, less the other one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.record.json_types import Count, Number, Share

Labels = NDArray[np.int64]

_SAMPLES = 400
_SURE = 0.95


class Fairness(msgspec.Struct, frozen=True):
    """How a classifier decides on labelled inputs of two groups.

    Attributes:
        rows: how many inputs.
        accuracy: the share to which it gives the true label.
        spd: how much more often it gives the favourable label in the first group.
        aaod: the mean size of that difference among inputs without and with that label.
        eod: the same difference among inputs that have the label.

    """

    rows: Count
    accuracy: Share
    spd: Number
    aaod: Share
    eod: Number

    @property
    def bias(self) -> float:
        """What candidates are chosen by: AAOD and the size of EOD together."""
        return self.aaod + abs(self.eod)


def falls_surely(
    decisions: Sequence[Labels],
    labels: Labels,
    first: NDArray[np.bool_],
    favourable: int,
    rng: np.random.Generator,
) -> bool:
    """Whether the bias is less afterwards in 95 % of samples drawn with replacement (bootstrap).

    They are stratified: each has as many inputs of each group with the favourable label, and
    without it, as there are, so that its rates can be compared.

    Args:
        decisions: those before and those after, each (n,).
        labels: (n,), the true ones.
        first: (n,), whether the input is of the first group.
        favourable: the label that is wished for.
        rng: draws the samples.

    Raises:
        UserError: of a group no input has that label, or all have.

    """
    cells = 2 * first + (labels == favourable)
    members = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    less = 0
    for _ in range(_SAMPLES):
        drawn = np.concatenate([rng.choice(of_cell, len(of_cell)) for of_cell in members])
        before, after = (
            fairness(decision[drawn], labels[drawn], first[drawn], favourable).bias
            for decision in decisions
        )
        less += after < before
    return less >= _SURE * _SAMPLES


def fairness(
    decisions: Labels, labels: Labels, first: NDArray[np.bool_], favourable: int
) -> Fairness:
    """Return the figures of decisions.

    Args:
        decisions: (n,), a class of each input.
        labels: (n,), the true ones.
        first: (n,), whether the input is of the first group.
        favourable: the label that is wished for.

    Raises:
        UserError: of a group no input has that label, or all have.

    """
    require_rates("a group", labels, first, favourable)
    given, true = decisions == favourable, labels == favourable

    def more(among: NDArray[np.bool_]) -> float:
        return float(given[among & first].mean() - given[among & ~first].mean())

    among_others, among_favoured = more(~true), more(true)
    return Fairness(
        rows=len(labels),
        accuracy=float((decisions == labels).mean()),
        spd=more(np.ones(len(labels), bool)),
        aaod=(abs(among_others) + abs(among_favoured)) / 2,
        eod=among_favoured,
    )


def require_rates(of: str, labels: Labels, first: NDArray[np.bool_], favourable: int) -> None:
    """Refuse inputs of which a group lacks the favourable label, or has no other.

    Args:
        of: what has the inputs, for the message.
        labels: (n,), the true ones.
        first: (n,), whether the input is of the first group.
        favourable: the label that is wished for.

    """
    true = labels == favourable
    for among, said in ((~true, "without"), (true, "with")):
        if not ((among & first).any() and (among & ~first).any()):
            raise UserError(
                f"{of} has no input {said} the label {favourable}, so that its rates cannot be"
                " compared: give more labelled inputs"
            )


class Attribute:
    """An attribute that decisions should not depend on: columns of a table with two combinations.

    Attributes:
        columns: positions of its columns, one, or several of a one-hot code.
        values: the two combinations, (2, columns), in ascending order.

    """

    def __init__(self, inputs: NDArray[np.generic], columns: Sequence[int]) -> None:
        """Find the two combinations.

        Args:
            inputs: (n, features).
            columns: positions of the columns.

        Raises:
            UserError: the inputs are no rows of a table, or have other than two combinations there.

        """
        if inputs.ndim != 2:
            raise UserError(
                f"--groups is for rows of a table, (features,), and inputs here are"
                f" {inputs.shape[1:]}"
            )
        if any(not 0 <= column < inputs.shape[1] for column in columns):
            raise UserError(f"--groups: there are columns 0 to {inputs.shape[1] - 1}")
        self.columns = tuple(columns)
        self.values = np.unique(inputs[:, list(columns)], axis=0)
        if len(self.values) != 2:
            named = ",".join(map(str, columns))
            raise UserError(
                f"--groups {named}: the inputs have {len(self.values)} combinations of values in"
                " these columns, and two groups are compared: name the column of an attribute with"
                " two values, or all columns of its one-hot code"
            )

    def first(self, inputs: NDArray[np.generic]) -> NDArray[np.bool_]:
        """Return which inputs have the first combination, (n,)."""
        found: NDArray[np.bool_] = (inputs[:, list(self.columns)] == self.values[0]).all(axis=1)
        return found

    def require_known(self, inputs: NDArray[np.generic]) -> None:
        """Refuse inputs that are of neither group.

        Args:
            inputs: (n, features), of `--test`.

        """
        columns = inputs[:, list(self.columns)]
        others = int((columns != self.values[:, None]).any(axis=2).all(axis=0).sum())
        if others:
            named = ",".join(map(str, self.columns))
            raise UserError(
                f"--test: {others:,} of {len(inputs):,} rows have other values in the columns"
                f" {named} of --groups than the seeds: leave these rows away"
            )

    def flipped(self, inputs: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the inputs, each with the other combination."""
        made: NDArray[np.generic] = inputs.copy()
        made[:, list(self.columns)] = self.values[self.first(inputs).astype(int)]
        return made
