"""The operators that there are: ours, and those of installed packages."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

ENTRY_POINTS = "edgeflare.operators"
"""The group of entry points under which a package offers operators, or modules that hold some."""

Sample = NDArray[Any]
"""An input of any domain."""

Image = NDArray[np.uint8]
"""An input of the domain `image`: HWC, uint8, any size, 1, 3 or 4 channels."""

Mutation = Callable[[Sample, np.random.Generator], Sample]


class OperatorError(ValueError):
    """An operator that does not exist, cannot be loaded, or breaks its promise; one line."""


@dataclass(frozen=True, slots=True)
class MutationOperator:
    """A mutation operator.

    Attributes:
        name: as reports and users write it.
        domain: what it mutates.
        apply: from an input and the only source of randomness that it may use, to a new input of
            the same shape and dtype. It leaves its input as it was.

    """

    name: str
    domain: str
    apply: Mutation

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Mutate an input.

        Raises:
            OperatorError: the result is not a new array of the input's shape and dtype.

        """
        mutant = self.apply(sample, rng)
        if mutant is sample:
            raise OperatorError(
                f"operator '{self.name}' returned its input; it must return a new array"
            )
        shape, dtype = getattr(mutant, "shape", None), getattr(mutant, "dtype", type(mutant))
        if shape != sample.shape or dtype != sample.dtype:
            raise OperatorError(
                f"operator '{self.name}' returned {dtype} of shape {shape}; "
                f"it must return {sample.dtype} of shape {sample.shape}, as it was given"
            )
        return mutant


_registered: dict[tuple[str, str], MutationOperator] = {}


def operator(name: str, *, domain: str = "image") -> Callable[[Mutation], MutationOperator]:
    """Make the decorated function an operator, known to `operators` by its name.

    Raises:
        OperatorError: the domain has another operator of that name.

    """

    def register(apply: Mutation) -> MutationOperator:
        if (domain, name) in _registered:
            raise OperatorError(
                f"there are two {domain} operators named '{name}'; give one another name"
            )
        made = MutationOperator(name, domain, apply)
        _registered[domain, name] = made
        return made

    return register


def operators(
    domain: str = "image", names: Iterable[str] | None = None
) -> tuple[MutationOperator, ...]:
    """Return a domain's operators: those named, in that order, or all, in the order of their names.

    Raises:
        OperatorError: a name is unknown, or an installed package's operators do not load.

    """
    _load_all()
    known = {name: made for (where, name), made in _registered.items() if where == domain}
    if names is None:
        return tuple(known[name] for name in sorted(known))
    chosen = tuple(names)
    for name in chosen:
        if name not in known:
            raise OperatorError(_unknown(name, domain, sorted(known)))
    return tuple(known[name] for name in chosen)


@cache
def _load_all() -> None:
    import_module("edgeflare_operators.image")
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        _load(entry)


def _load(entry: EntryPoint) -> None:
    package = entry.dist.name if entry.dist else "unknown"
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise OperatorError(
            f"operators '{entry.name}' of package {package} do not load "
            f"({type(error).__name__}: {error}); mend or uninstall the package"
        ) from error
    if not isinstance(loaded, (MutationOperator, ModuleType)):
        raise OperatorError(
            f"entry point '{entry.name}' of package {package} names {entry.value}, which is no "
            f"operator; decorate the function with @operator"
        )


def _unknown(name: str, domain: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are {', '.join(known)}"
    return f"no {domain} operator is named '{name}'; {hint}"
