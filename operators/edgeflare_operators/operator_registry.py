"""The operators that there are: the built-in ones, and those of other installed packages."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.entry_points import entry_points

ENTRY_POINTS = "edgeflare.operators"
"""The group of entry points under which a package offers operators, or modules that hold some."""

OWN_PACKAGE = "edgeflare_operators"
"""The package that defines the built-in operators; it offers them as any other package does."""

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
        apply: the function from an input, and the only source of randomness that it may use, to a
            new input of the same shape and dtype. It leaves its input as it was.
        require: raises OperatorError where a library that it needs is not installed.

    """

    name: str
    domain: str
    apply: Mutation
    require: Callable[[], object] = lambda: None

    @property
    def package(self) -> str:
        """The top-level package, or the module outside of any, that defines the operator."""
        apply = self.apply
        while isinstance(apply, partial):  # as a domain binds it
            apply = apply.func
        return str(getattr(apply, "__module__", "unknown")).partition(".")[0]

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """Mutate an input; the function cannot write to it.

        Raises:
            OperatorError: the function of another package fails, or the result is not a new array
                of the input's shape and dtype, or has infinity or NaN.

        """
        given = np.asarray(sample).view()
        given.flags.writeable = False
        mutant = self._applied(given, rng)
        if mutant is given:
            raise OperatorError(
                f"operator '{self.name}' returned its input; it must return a new array"
            )
        shape, dtype = getattr(mutant, "shape", None), getattr(mutant, "dtype", type(mutant))
        if shape != sample.shape or dtype != sample.dtype or type(mutant) is not np.ndarray:
            raise OperatorError(
                f"operator '{self.name}' returned {type(mutant).__name__}, {dtype} of shape"
                f" {shape}; it must return an array of numpy, {sample.dtype} of shape"
                f" {sample.shape}, as it was given"
            )
        if mutant.dtype.kind == "f" and not np.isfinite(mutant).all():
            raise OperatorError(
                f"operator '{self.name}' returned infinity or NaN; it must return finite numbers"
            )
        return mutant

    def _applied(self, given: Sample, rng: np.random.Generator) -> Any:
        try:
            return self.apply(given, rng)
        except OperatorError:
            raise
        except Exception as error:  # whatever a foreign function raises
            if self.package == OWN_PACKAGE:
                raise
            message = " ".join(str(error).split())
            raise OperatorError(
                f"operator '{self.name}' of package {self.package} fails"
                f" ({type(error).__name__}: {message}); correct or uninstall the package"
            ) from error


_registered: dict[tuple[str, str], MutationOperator] = {}


def operator(
    name: str, *, domain: str = "image", require: Callable[[], object] = lambda: None
) -> Callable[[Mutation], MutationOperator]:
    """Make the decorated function an operator, known to `operators` by its name.

    Args:
        name: as reports and users write it.
        domain: what it mutates.
        require: called before a search that may draw it; raises OperatorError where a library that
            it needs is not installed.

    Raises:
        OperatorError: the domain has another operator of that name.

    """

    def register(apply: Mutation) -> MutationOperator:
        if (domain, name) in _registered:
            raise OperatorError(
                f"there are two {domain} operators named '{name}'; give one another name"
            )
        made = MutationOperator(name, domain, apply, require)
        _registered[domain, name] = made
        return made

    return register


def operators(
    domain: str = "image", names: Iterable[str] | None = None
) -> tuple[MutationOperator, ...]:
    """Return a domain's operators: those named, in that order, or all, in the order of their names.

    Other packages are loaded only where a name is not a built-in one's, or no names are given.

    Raises:
        OperatorError: a name is unknown, an installed package's operators do not load, or the
            built-in operators are not registered.

    """
    chosen = None if names is None else tuple(names)
    _load_built_in()
    if chosen is None or not _known(domain).keys() >= set(chosen):
        _load_all()
    known = _known(domain)
    if chosen is None:
        return tuple(known[name] for name in sorted(known))
    for name in chosen:
        if name not in known:
            raise OperatorError(_unknown(name, domain, sorted(known)))
    return tuple(known[name] for name in chosen)


def built_in_operators(domain: str = "image") -> tuple[MutationOperator, ...]:
    """Return a domain's built-in operators in the order of their names; loads no other package.

    Raises:
        OperatorError: they are not registered.

    """
    _load_built_in()
    known = _known(domain)
    return tuple(known[name] for name in sorted(known) if known[name].package == OWN_PACKAGE)


def domains() -> tuple[str, ...]:
    """Return the domains that have an operator, in the order of their names.

    Raises:
        OperatorError: as by `operators`.

    """
    _load_built_in()
    _load_all()
    return tuple(sorted({domain for domain, _ in _registered}))


def _known(domain: str) -> dict[str, MutationOperator]:
    return {name: made for (where, name), made in _registered.items() if where == domain}


@cache
def _load_built_in() -> None:
    built_in = [entry for entry in _entries() if _is_built_in(entry)]
    if not built_in:
        raise OperatorError(
            f"edgeflare can be imported but is not installed (no entry point of {ENTRY_POINTS} "
            f"names {OWN_PACKAGE}), so it has no operators: run `pip install -e .` in its checkout"
        )
    for entry in built_in:
        _load(entry)


@cache
def _load_all() -> None:
    for entry in _entries():
        if not _is_built_in(entry):
            _load(entry)


def _entries() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)


def _is_built_in(entry: EntryPoint) -> bool:
    return entry.module.partition(".")[0] == OWN_PACKAGE


def _load(entry: EntryPoint) -> None:
    package = entry.dist.name if entry.dist else "unknown"
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise OperatorError(
            f"operators '{entry.name}' of package {package} do not load "
            f"({type(error).__name__}: {error}); correct or uninstall the package"
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
