"""Permutations of inputs that keep what their groups and strata are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def group_permutations(
    groups: NDArray[np.int64],
    strata: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return orders of inputs, as likely as their own if what is permuted has nothing to tell.

    Whole groups change places with groups that have as many inputs in each stratum, since inputs of
    one group are alike and are no independent evidence. Then the inputs of a group change places
    within their stratum: in pairs of which always one deviates, that is all there is to permute.

    Args:
        groups: (inputs,) the group of each.
        strata: (inputs,) the stratum of each.
        count: of the orders.
        rng: from which they are drawn.

    Returns:
        (count, inputs): `values[orders[n]]` are permuted values.

    """
    numbers = np.unique(groups, return_inverse=True)[1].reshape(-1)
    members: dict[int, list[int]] = {}
    for input_, number in enumerate(numbers.tolist()):
        members.setdefault(number, []).append(input_)
    kinds: dict[tuple[int, ...], int] = {}
    kind_of = np.empty(len(members), np.int64)
    for number, inputs in members.items():
        kind_of[number] = kinds.setdefault(tuple(sorted(strata[inputs].tolist())), len(kinds))
    kind = kind_of[numbers]
    places = np.lexsort((strata, numbers, kind))
    orders = np.empty((count, len(groups)), np.int64)
    for order in orders:
        shuffled = rng.random(len(members))[numbers]
        order[places] = np.lexsort((rng.random(len(groups)), strata, shuffled, kind))
    return orders
