"""What is said of devices: what is odd about them, and what is as it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from edgeflare.devices.provenance import Provenance
from edgeflare.pages.facts import count_of
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.device_figures import InvocationVariant, SeenOperators
from edgeflare.run.run_document import RunDevice


@dataclass(frozen=True, slots=True)
class _SeenDevice:
    """What was seen of a device, whatever inputs it was given.

    Attributes:
        known: the device, and what is known of it.
        repeated: how many inputs it was given once more.
        unsteady: those of them on which its outputs were others then.
        variants: what it answers in other ways.
        warnings: a sentence each.
        wrong: the layers that it computes otherwise, in words.
        operators: what came of its operators by themselves; None where these were not tried.

    """

    known: RunDevice
    repeated: int
    unsteady: int
    variants: tuple[InvocationVariant, ...]
    warnings: tuple[str, ...]
    wrong: tuple[str, ...]
    operators: SeenOperators | None


def odd_of_devices(figures: CheckFigures) -> Iterator[str]:
    """Yield what is odd about devices, a sentence each without its full stop."""
    for seen in _seen(figures):
        name = seen.known.name
        if seen.wrong:
            yield f"it computes {seen.wrong[0]} otherwise"
        if seen.unsteady:
            yield f"{name} gave {seen.unsteady} of {seen.repeated} other outputs the second time"
        for variant in seen.variants:
            if variant.failed or variant.changed or _far(variant):
                yield f"{name} {_otherwise(variant)}"
        if seen.operators is not None:
            yield from _faults(seen.operators)
        yield from seen.warnings


def sure_of_devices(figures: CheckFigures) -> Iterator[str]:
    """Yield what was looked into and is as it should be, a sentence each without its full stop."""
    seen = list(_seen(figures))
    for device in seen:
        said = [*_same(device), *_delegated(device.known.provenance)]
        if device.operators is not None:
            known = device.operators
            said.append(
                f"{known.tried} of {count_of(known.operators, 'operator')} tried by themselves,"
                f" in {count_of(known.models, 'model')}"
            )
        if said:
            yield f"{f'{device.known.name}: ' if len(seen) > 1 else ''}{'; '.join(said)}"


def _same(device: _SeenDevice) -> Iterator[str]:
    """Yield in which ways a device gives the same outputs."""
    ways = ["twice"] if device.repeated and not device.unsteady else []
    for variant in device.variants:
        if variant.failed or variant.changed or _far(variant):
            continue
        ways.append(f"{variant.way}{' but for rounding' if variant.others else ''}")
    if ways:
        yield f"the same {', '.join(ways)}"


_FAR_DB: Final = 30.0
"""Outputs that are nearer than this differ by more than the order of sums."""


def _far(variant: InvocationVariant) -> bool:
    """Whether outputs differ by more than rounding, where nobody knows what they decide."""
    return variant.changed is None and variant.snr_db is not None and variant.snr_db < _FAR_DB


def _otherwise(variant: InvocationVariant) -> str:
    """Return how a device answers otherwise in another way, in words."""
    if variant.failed:
        return f"has no answer to {variant.failed} of {variant.inputs} inputs {variant.way}"
    if variant.changed is None:
        return f"has outputs {variant.way} that are {variant.snr_db:.0f} dB from those one by one"
    return f"decides {variant.changed} of {variant.inputs} inputs otherwise {variant.way}"


def _faults(operators: SeenOperators) -> Iterator[str]:
    if operators.faults:
        first, more = operators.faults[0], len(operators.faults) - 1
        rest = f", and {more} more" if more else ""
        where = "as it stands" if first.places else "near to how it stands"
        known = f"; this is {first.issue}" if first.issue else ""
        yield f"conform finds {first} on values of its own, {where}{known}{rest}"


def _delegated(what: Provenance) -> Iterator[str]:
    """Yield how many nodes a delegate or an accelerator took, where one was asked for."""
    if what.delegated_nodes and what.total_nodes:
        taker = what.delegate or what.kernels
        yield f"{taker} took {what.delegated_nodes} of {what.total_nodes} nodes"


def _seen(figures: CheckFigures) -> Iterator[_SeenDevice]:
    operators = {operator.device: operator for operator in figures.operators}
    for drawn in figures.drawn:
        name = drawn.device.name
        yield _SeenDevice(
            drawn.device,
            drawn.repeated,
            drawn.unsteady,
            drawn.variants,
            drawn.warnings,
            figures.wrong_layers(name),
            operators.get(name),
        )
    for device in figures.devices:
        its, name = device.kernels, device.decisions.device
        yield _SeenDevice(
            its.device,
            its.repeated,
            its.unsteady,
            its.variants or (),
            its.warnings,
            figures.wrong_layers(name),
            operators.get(name),
        )
