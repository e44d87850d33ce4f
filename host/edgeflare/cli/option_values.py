"""Values of options: reading those that are more than a word or a number, and what a shell offers.

What a shell offers is found without opening anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from glob import escape, iglob
from pathlib import Path
from typing import Final

import typer
from typer import Context

from edgeflare.devices.profile import EMULATED_ALL
from edgeflare.devices.profile_lookup import list_profiles
from edgeflare.devices.transports.transport_registry import transports
from edgeflare.errors import UserError, suggestion
from edgeflare.pages.facts import shortened
from edgeflare.record.json_file import MOST
from edgeflare.run.plan import Default
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, DOCUMENT, JOURNAL
from edgeflare.strategies.operator_pool import BUILT_IN
from edgeflare.strategies.strategy_parameters import Value
from edgeflare.strategies.strategy_registry import find_strategy, pool_strategies, strategies

MOST_THRESHOLDS = 10
"""Most thresholds of neuron coverage, so that its table fits a page."""


def require_finite(value: float | None) -> float | None:
    """Refuse infinity and what is no number, which Typer takes for numbers within any range.

    Raises:
        BadParameter: it is one of these.

    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def read_numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    """Return one number, or one for each channel; None where nothing was said.

    Raises:
        UserError: it is something else.

    """
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise UserError(
            f"{option} {text!r}: expected one number, or one for each channel as in 0.49,0.48,0.45"
        ) from None


def read_parts(option: str, text: str) -> list[str]:
    """Return values that are separated by commas.

    Raises:
        UserError: one is empty.

    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UserError(f"{option} {text!r}: expected values separated by commas")
    return parts


def read_whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Return whole numbers from 0 on that are separated by commas.

    Raises:
        UserError: one is something else.

    """
    parts = read_parts(option, text)
    for part in parts:
        if not is_whole_number(part):
            raise UserError(
                f"{option} {shortened(part, 60)!r}: expected whole numbers from 0 to {MOST}, as in"
                " 0,1,2"
            )
    return tuple(map(int, parts))


def is_whole_number(text: str) -> bool:
    """Tell whether a text is a whole number from 0 on, and not larger than any that counts."""
    return text.isdecimal() and len(text) <= len(str(MOST)) and int(text) <= MOST


def read_parameters(
    assignments: Sequence[str], strategies: Sequence[str]
) -> Mapping[str, Mapping[str, Value]]:
    """Return the parameters that "STRATEGY.NAME=VALUE" set, by strategy.

    Raises:
        UserError: one is not of that form, or its strategy is not among those that are run, or it
            is not as the strategy's parameter has to be.

    """
    by_strategy: dict[str, list[str]] = {}
    for assignment in assignments:
        strategy, dot, rest = assignment.partition(".")
        if not dot or "=" in strategy:
            raise UserError(f"--set {assignment}: expected STRATEGY.NAME=VALUE")
        if strategy not in strategies:
            raise UserError(
                f"--set {assignment}: {strategy} is none of the strategies that are run"
                f"{suggestion(strategy, strategies)}: name one of {', '.join(strategies)}"
            )
        by_strategy.setdefault(strategy, []).append(rest)
    return {
        strategy: find_strategy(strategy).read_parameters(rest)
        for strategy, rest in by_strategy.items()
    }


def read_bound(option: str, text: str) -> float | Default | None:
    """Return a bound in levels; None for "none", and "default" for itself.

    Raises:
        UserError: it is neither a number above 0 nor none or default.

    """
    if text == "none":
        return None
    if text == "default":
        return "default"
    try:
        bound = float(text)
    except ValueError:
        bound = 0.0
    if not (bound > 0.0 and math.isfinite(bound)):
        raise UserError(
            f"{option} {text}: expected a number of levels, of images gray levels, above 0, or none"
        )
    return bound


def read_within(option: str, text: str) -> float | Default | None:
    """Return a nearness in dB; None for "none", and "default" for itself.

    Raises:
        UserError: it is neither a number from 0 on nor none or default.

    """
    if text == "none":
        return None
    if text == "default":
        return "default"
    try:
        level = float(text)
    except ValueError:
        level = -1.0
    if not (level >= 0.0 and math.isfinite(level)):
        raise UserError(
            f"{option} {text}: expected a nearness in dB (of images a PSNR), such as 30, or none"
        )
    return level


def read_operators(text: str, strategies: Iterable[str]) -> tuple[str, ...]:
    """Return the names that make a pool; `pool_names` says which operators they are.

    Args:
        text: names of operators and of sets of them, separated by commas; see `pool_names`.
        strategies: names of those that are to draw from the pool.

    Raises:
        UserError: operators were chosen for strategies that have their own.

    """
    chosen = tuple(read_parts("--operators", text))
    if chosen != (BUILT_IN,) and not any(
        find_strategy(name).strategy.draws_from_pool for name in strategies
    ):
        raise UserError(
            f"--operators {text}: {', '.join(strategies)} cannot draw from chosen operators: leave "
            f"the option out, or take one of the strategies {', '.join(pool_strategies())}"
        )
    return chosen


def read_thresholds(option: str, text: str | None) -> tuple[float, ...]:
    """Return thresholds of neuron coverage that are separated by commas; none where none is said.

    They come in rising order, each once.

    Raises:
        UserError: one is not a number from 0 to below 1, or they are more than ten.

    """
    if text is None:
        return ()
    parts = read_parts(option, text)
    if len(parts) > MOST_THRESHOLDS:
        raise UserError(f"{option} has {len(parts)} thresholds: give {MOST_THRESHOLDS} at most")
    for part in parts:
        try:
            fits = 0.0 <= float(part) < 1.0
        except ValueError:
            fits = False
        if not fits:
            raise UserError(
                f"{option} {part!r}: expected thresholds from 0 to below 1, as in 0,.25,.5,.75"
            )
    return tuple(sorted(set(map(float, parts))))


def require_one_of(names: Sequence[str]) -> Callable[[str], str]:
    """Return what refuses a value that is none of some names, as the callback of an option."""

    def required(value: str) -> str:
        if value not in names:
            listed = ", ".join(f"'{name}'" for name in names)
            raise typer.BadParameter(f"{value!r} is not one of {listed}")
        return value

    return required


_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|)")
_UNITS: Final = {"s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def read_time(option: str, text: str) -> float:
    """Return a time in seconds.

    Raises:
        UserError: it is none, or 0.

    """
    found = _TIME.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise UserError(f"{option} {text!r}: expected a time above 0, as in 90s, 10m or 1h")
    return float(found[1]) * _UNITS[found[2]]


def time_of(option: str) -> Callable[[object], float]:
    """Return what reads a time as the value of an option, as its parser; a number is seconds."""
    return lambda value: read_time(option, str(value))


def complete_device(incomplete: str) -> list[str]:
    """Return the profiles, and the schemes of addresses, that begin so."""
    names = sorted([*(profile.name for profile in list_profiles()[0]), EMULATED_ALL])
    schemes = [
        f"{transport.scheme.name}://" for transport in transports().values() if transport.scheme
    ]
    return [name for name in (*names, *schemes) if name.startswith(incomplete)]


def complete_strategy(incomplete: str) -> list[tuple[str, str]]:
    """Return the strategies that begin so, each with what it is."""
    return [
        (entry.name, entry.summary)
        for entry in strategies().values()
        if entry.name.startswith(incomplete)
    ]


def complete_parameter(context: Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the parameters of the strategy in the command that begin so, each with its meaning."""
    known = strategies().get(context.params.get("strategy") or "boundary")
    return [
        (f"{parameter.name}=", parameter.description)
        for parameter in (known.parameters if known else ())
        if f"{parameter.name}=".startswith(incomplete)
    ]


def complete_run(incomplete: str) -> list[str]:
    """Return the run directories whose paths begin so, down to the next folder but one.

    Where there are none, the shell completes paths by itself.
    """
    found = {
        str(Path(file).parent)
        for below in ("*", "*/*")
        for name in (JOURNAL, DOCUMENT, CONFORM_JOURNAL, CONFORM_DOCUMENT)
        for file in iglob(f"{escape(incomplete)}{below}/{name}")
    }
    return sorted(found)
