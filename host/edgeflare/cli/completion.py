"""What a shell offers for an option's or an argument's value, without opening anything."""

from __future__ import annotations

from glob import escape, iglob
from pathlib import Path

from typer import Context

from edgeflare.devices.profile import EMULATED_ALL
from edgeflare.devices.profile_lookup import list_profiles
from edgeflare.devices.transports.transport_registry import transports
from edgeflare.run.run_directory import CONFORM_DOCUMENT, CONFORM_JOURNAL, DOCUMENT, JOURNAL
from edgeflare.search.strategy_registry import strategies


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
