"""`fleet.html`: devices, units and what is quarantined, in a page that loads itself again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from edgeflare.fleet.record.fleet_state import FleetState, UnitState
from edgeflare.untrusted_text import printable

REFRESH_SECONDS = 5

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;
color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem}
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #d8dee4;
vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bad{color:#a40e26}.done{color:#1a7f37}progress{width:8rem}
"""


def fleet_page(state: FleetState) -> str:
    """Return the page of a state: one file, without a script."""
    done = sum(unit.status == "done" for unit in state.units)
    ended = sum(unit.ended for unit in state.searched)
    seeds = sum(unit.seeds for unit in state.searched)
    of, by = (seeds, ended) if seeds else (len(state.units), done)
    refresh = "" if state.ended else f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
    drained = f"<p>Drained: {_text(', '.join(state.drained))}.</p>" if state.drained else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>EdgeFlare fleet: {done} of {len(state.units)} units</title>"
        f"<style>{_STYLE}</style></head><body><h1>EdgeFlare fleet</h1>"
        f"<p>{_text(state.summary())}, {state.seconds:,.0f} s"
        f"{', ended' if state.ended else ''}.</p>"
        f'{drained}<progress max="{of}" value="{by}"></progress>'
        f"<h2>Devices</h2>{_devices(state)}<h2>Units</h2>{_units(state.units)}</body></html>\n"
    )


def _devices(state: FleetState) -> str:
    rows = [
        (
            _text(one.place),
            _text(one.unit),
            _number(one.units),
            _number(one.busy_seconds),
            _number(100 * state.busy_share(one)),
            f'<span class="bad">{_text(why)}</span>' if (why := state.why_idle(one)) else "",
        )
        for one in state.places
    ]
    return _table(
        ("device", "works on", "units", "busy s", "busy %", "no further work, because"), rows
    )


def _units(units: Sequence[UnitState]) -> str:
    rows = []
    for unit in units:
        tries = "<br>".join(
            f"{one.number}: {_text(one.device)} on {_text(one.host)}, {one.seconds:.0f} s"
            f" {_text(one.outcome)}"
            for one in unit.attempts
        )
        colour = "bad" if unit.status == "given up" else unit.status
        status = f'<span class="{_text(colour)}">{_text(unit.status)}</span>'
        searched = f"{unit.ended} of {unit.seeds}"
        name, device_class = _text(unit.name), _text(unit.device_class)
        rows.append((name, device_class, status, searched, _number(unit.found), tries))
    header = ("unit", "device class", "status", "searched", "found", "attempts")
    return _table(header, rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{one}</th>" for one in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _text(value: str) -> str:
    return escape(printable(value))
