"""The seam of conditions: what the field does to an input, such as fog or a cheap microphone.

An input under a condition depends on these two, the severity and the run seed alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.core.input_space import Input, InputSpace, read_only
from edgeflare.errors import UserError
from edgeflare.python_callable import reason

SEVERITIES = (1, 2, 3, 4, 5)
"""Severities from hardly noticed to severe, as in Hendrycks and Dietterich (2019)."""

OWN_PACKAGE = "edgeflare"
"""The package whose conditions are ours: what fails there is a mistake in edgeflare."""

Change = Callable[[Input, float, np.random.Generator], Input]
"""Changes an input at a severity from 1 to 5, with the only source of randomness that it may use,
into a new one of the same shape and dtype. Between whole severities, parameters are
interpolated."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A natural condition.

    A package makes conditions known by an entry point that names a module, whose attributes of this
    type are found:

        [project.entry-points."edgeflare.conditions"]
        rain = "my_package.rain"

    Attributes:
        name: as reports and users write it, in lower case with hyphens.
        domain: name of the domain whose inputs it changes.
        sets: names of the sets that it belongs to, such as "common".
        summary: what it is, in a sentence, for `--help` and reports.
        change: what makes an input under this condition.

    """

    name: str
    domain: str
    sets: tuple[str, ...]
    summary: str
    change: Change

    def __call__(self, input_: Input, severity: float, rng: np.random.Generator) -> Input:
        """Return an input under this condition.

        Args:
            input_: an input of the domain; the function cannot write to it.
            severity: severity from 1 to 5.
            rng: generator from which all that is random is drawn.

        Raises:
            UserError: a function of another package fails, or it returned something of another
                shape or dtype, or infinity or NaN.

        """
        guarded = read_only(input_)
        try:
            changed = self.change(guarded, severity, rng)
        except Exception as error:  # whatever a foreign function raises
            package = str(getattr(self.change, "__module__", "unknown")).partition(".")[0]
            if package == OWN_PACKAGE:
                raise
            raise UserError(
                f"condition '{self.name}' of package {package} fails at severity {severity:g}"
                f" ({reason(error)}); correct or uninstall the package"
            ) from error
        shape, dtype = getattr(changed, "shape", None), getattr(changed, "dtype", type(changed))
        if shape != input_.shape or dtype != input_.dtype:
            raise UserError(
                f"condition '{self.name}' returned {dtype} of shape {shape}; it must return"
                f" {input_.dtype} of shape {input_.shape}, as it was given"
            )
        if changed.dtype.kind == "f" and not np.isfinite(changed).all():
            raise UserError(
                f"condition '{self.name}' returned infinity or NaN at severity {severity:g}; it"
                " must return finite numbers"
            )
        return changed


def condition(
    name: str, *, domain: str, sets: tuple[str, ...] = (), summary: str
) -> Callable[[Change], Condition]:
    """Make the decorated function a condition; see `Condition` for what it takes and returns."""

    def make(change: Change) -> Condition:
        return Condition(name, domain, sets, summary, change)

    return make


def at_severity(values: Sequence[float], severity: float) -> float:
    """Return a parameter at a severity; between two whole ones it is interpolated.

    Args:
        values: the parameter at the severities 1 to 5.
        severity: severity from 1 to 5.

    """
    return float(np.interp(severity, SEVERITIES, values))


def changed_input(
    condition: Condition, input_: Input, severity: float, rng_seed: int, space: InputSpace
) -> Input:
    """Return an input under a condition, within what its domain allows.

    It is the same whatever other inputs, conditions and severities there are, and in which order.
    All severities share what is drawn, so that a rate against severity does not jump by chance.

    Args:
        condition: a condition of the input's domain.
        input_: the input; it stays as it was.
        severity: severity from 1 to 5.
        rng_seed: run seed, 0 or more.
        space: the domain's space, whose limits are held.

    Raises:
        UserError: the condition returned something of another shape or dtype.

    """
    shape = ",".join(map(str, input_.shape)).encode()
    content = zlib.crc32(input_.tobytes(), zlib.crc32(shape))
    named = zlib.crc32(condition.name.encode())
    rng = np.random.default_rng(np.random.SeedSequence([rng_seed, content, named]))
    return space.clipped(condition(input_, severity, rng))
