"""Drawn sizes, halved or doubled until a model has about as many values as it should."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edgeflare.conform.specification.settings import Configuration, Setting, whole

Work = tuple[int, int, int, int]
"""Values of the input, of the weights and of the result, and multiplications."""

_MOST: Work = (1000, 4000, 600, 100_000)
_WANTED = (5.0, 9.0)
"""Powers of 2 between which the wanted number of results is drawn: mean errors need many, and
kernels treat few in another way."""

_ATTEMPTS = 8


def fitted_sizes(
    settings: Mapping[str, Setting],
    sizes: Sequence[str],
    fitted: Callable[[Mapping[str, Setting]], dict[str, Setting]],
    work: Callable[[Configuration], Work],
    rng: np.random.Generator,
) -> dict[str, Setting]:
    """Return settings of a model of a suitable size, or nearly.

    Args:
        settings: as they are drawn.
        sizes: names of settings that may be changed.
        fitted: puts settings in order that do not fit each other.
        work: that a configuration makes.
        rng: draws how large the model should be, and what is doubled for it.

    """
    found = _shrunk(fitted(settings), sizes, fitted, work)
    wanted = 2 ** rng.uniform(*_WANTED)
    for _ in range(_ATTEMPTS):
        if not 0 < work(found)[2] < wanted:
            break
        name = sizes[int(rng.integers(len(sizes)))]
        doubled = fitted({**found, name: whole(found, name) * 2 + int(rng.integers(2))})
        if _small(work(doubled)):
            found = doubled
    return found


def _shrunk(
    settings: dict[str, Setting],
    sizes: Sequence[str],
    fitted: Callable[[Mapping[str, Setting]], dict[str, Setting]],
    work: Callable[[Configuration], Work],
) -> dict[str, Setting]:
    found, fixed = settings, set[str]()
    while len(fixed) < len(sizes) and not _small(work(found)):
        largest = max((one for one in sizes if one not in fixed), key=lambda one: whole(found, one))
        halved = fitted({**found, largest: max(whole(found, largest) // 2, 1)})
        if halved[largest] == found[largest]:
            fixed.add(largest)
        found = halved
    return found


def _small(work: Work) -> bool:
    return all(one <= most for one, most in zip(work, _MOST, strict=True))
