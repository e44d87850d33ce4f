"""The folder of a fleet's work beside the run directory that becomes of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

import msgspec

from edgeflare.errors import UserError
from edgeflare.fleet.record.fleet_output import FleetOutput
from edgeflare.fleet.record.fleet_state import AttemptState, FleetRequest, FleetState, UnitState
from edgeflare.fleet.work.folder_archive import KINDS, NotARunError, require_run, unpack_folder
from edgeflare.fleet.work.local_disk import require_local_disk
from edgeflare.outside_text import json_value
from edgeflare.pages.facts import in_words
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.folder import ClaimedFolder, FolderKind, is_free, remove_documents
from edgeflare.record.folder_contents import FOLDER, LIST, list_as, read_contents
from edgeflare.record.folder_contents import STATE as STATE_FILE
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import plain_json, read_text
from edgeflare.record.path_inside import path_inside
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.seed_ids import SeedIds
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

FLEET = FolderKind("fleet")
UNIT = FolderKind(KINDS[0], others=KINDS[1:])

STATE = "fleet.json"
PAGE = "fleet.html"
REQUEST = "request.json"
DRAINED = "drained"
OUTPUT = "output"
UNITS = "units.txt"
DONE = "done"


@dataclass(frozen=True, slots=True)
class UnitEnding:
    """How a unit ended that is done.

    Attributes:
        exit_code: exit code of its command: 0 or 1.
        found: how many findings it has.
        printed: what the command printed, with `RUN` in the place of its run directory.

    """

    exit_code: int
    found: int
    printed: str


@dataclass(frozen=True, slots=True)
class FleetFolder:
    """`RUN.fleet`: the units' runs, backups, logs of attempts, and what people see."""

    path: Path

    @classmethod
    def beside(cls, run: Path, of: str = "") -> FleetFolder:
        """Return the folder that belongs to a run directory.

        Args:
            run: the run directory.
            of: the command whose work it is, where that only adds to the run.

        Raises:
            UserError: it is the root of a file system.

        """
        named = Path(os.path.abspath(run))  # "." and ".." have no name of their own
        if not named.name:
            raise UserError(f"{run} is no run directory: name another one")
        name = f"{named.name}.{of}.fleet" if of else f"{named.name}.fleet"
        return cls((run if run.name == named.name else named).with_name(name))

    def claim(self, request: FleetRequest, *, resume: bool, overwrite: bool) -> ClaimedFolder:
        """Make the folder, or take what is there of the same work.

        Returns:
            It, which no other process works in until it is closed.

        Raises:
            UserError: it holds other work, or there is some and nothing was said of it, or it lies
                on a network file system, or another process works on it.

        """
        require_local_disk(self.path.parent)
        file = self.path / REQUEST
        self._require_own()
        if not file.is_file() and resume:
            raise UserError(f"there is no {self.path} to go on with: leave out --resume")
        return FLEET.take(
            self.path, lambda: self._require_usable(request, resume=resume, overwrite=overwrite)
        )

    def _require_own(self) -> None:
        contents = read_contents(self.path)
        ours = contents is not None and contents.holds == FLEET.holds
        if os.path.lexists(self.path) and not ours and not is_free(self.path):
            raise UserError(f"{self.path} is no folder of a fleet: name another --out")

    def is_of(self, request: FleetRequest) -> bool:
        """Tell whether what is there, if anything, comes of the same work."""
        return (self.path / REQUEST).is_file() and self._begun() == request

    def _begun(self) -> FleetRequest | None:
        """Return what the command was asked that began the folder; None where that is damaged."""
        try:
            said = json_value(self._read(REQUEST))
            return msgspec.convert(said, FleetRequest, dec_hook=read_text)
        except ValueError:
            return None

    def _require_usable(self, request: FleetRequest, *, resume: bool, overwrite: bool) -> None:
        self._require_own()
        if not resume and not overwrite and self.has_work():
            raise UserError(
                f"{self.path} holds work of a fleet already: go on with --resume, replace it with"
                " --overwrite, or name another --out"
            )
        if not resume:
            return
        begun = self._begun()
        if begun is None:
            raise UserError(
                f"{self.path / REQUEST} is damaged, or was cut off: replace the work with"
                " --overwrite, or name another --out"
            )
        request.require_goes_on_with(begun, self.path)

    def begin(self, request: FleetRequest, places: Sequence[Path] = ()) -> None:
        """Begin anew in a folder that is claimed, without what is there.

        Args:
            request: what is asked.
            places: run directories that the work is put into in the end, instead of what is there.

        """
        # Killed on its way, it holds work of nobody: neither the old nor the new command goes on.
        write_atomically(self.path / REQUEST, b"")
        FLEET.empty(self.path)
        for name in (STATE, PAGE):
            list_as(self.path, name, STATE_FILE)
        if places:
            self.output.begin(places)
        write_atomically(self.path / REQUEST, json_bytes(plain_json(request)))

    def remove_unused(self) -> None:
        """Remove a folder that is claimed, where its command ended before anything was done."""
        with contextlib.suppress(OSError):
            if {path.name for path in self.path.iterdir()} <= {REQUEST, STATE, PAGE, OUTPUT, LIST}:
                FLEET.empty(self.path)

    def has_work(self) -> bool:
        """Whether an attempt has left something here to go on with."""
        return any((self.path / name).exists() for name in ("units", "backups"))

    @property
    def output(self) -> FleetOutput:
        """What is known of the run directories that the work is put into."""
        return FleetOutput(self.path / OUTPUT)

    def inner(self, name: str) -> Path:
        """Return where a run lies that is needed on the way, such as that of all units so far."""
        list_as(self.path, name, FOLDER)
        return self.path / name

    def kept_parts(self) -> dict[str, SeedIds] | None:
        """Return the seeds of each unit, by its name, when the work began; None before that."""
        try:
            lines = self._read(UNITS).decode(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        named = (line.partition(" ") for line in lines)
        parts = {name: SeedIds.read(ids) for name, _, ids in named}
        for name in parts:
            self.unit(name)  # which refuses one that leads out
        return parts

    def keep_parts(self, parts: Mapping[str, SeedIds]) -> None:
        """Keep how the seeds are shared out among units: whoever goes on takes the same."""
        lines = (f"{name} {ids}\n" for name, ids in parts.items())
        write_atomically(self.path / UNITS, "".join(lines).encode())

    def unit(self, name: str) -> Path:
        """Return the run directory of a unit that is done, or was stopped.

        Raises:
            UserError: it is no plain name.

        """
        return self._of_unit("units", name)

    def _of_unit(self, kept: str, name: str, end: str = "") -> Path:
        path_inside(self.path / kept, name, single=True)
        return self.path / self._name_in(kept, f"{name}{end}")

    def _name_in(self, kept: str, name: str) -> str:
        path_inside(self.path / kept, name, single=True)
        return f"{kept}/{name}"

    def ending(self, name: str) -> UnitEnding | None:
        """Return how a unit ended that is done; None for one that is not."""
        made = self.unit(name)
        try:
            said = self._read(self._name_in(DONE, f"{name}.json"))
            ending = msgspec.convert(json_value(said), UnitEnding)
        except (FileNotFoundError, ValueError):  # damaged by a loss of power: done again
            return None
        return ending if made.is_dir() else None

    def keep_unit(self, name: str, archived: bytes, ending: UnitEnding | None) -> None:
        """Keep the run of a unit: all of it or, where this process ends meanwhile, none.

        Args:
            name: the unit's name.
            archived: the unit's run, archived.
            ending: how it ended; None where it was stopped before.

        Raises:
            NotARunError: what is archived is none.

        """
        place = self.unit(name)
        list_as(self.path, place.relative_to(self.path).as_posix(), FOLDER)
        with UNIT.claim(place, overwrite=True) as claimed, claimed.replaced() as new:
            unpack_folder(archived, new)
        if ending is not None:
            write_atomically(
                self._of_unit(DONE, name, ".json"), json.dumps(asdict(ending)).encode()
            )
            remove_documents(self.path, self._name_in("backups", name))

    def keep_backup(self, name: str, archived: bytes) -> None:
        """Keep what an attempt at a unit has so far.

        Raises:
            NotARunError: that is no archive of a run.

        """
        place = self._of_unit("backups", name)
        require_run(archived)
        list_as(self.path, place.relative_to(self.path).as_posix(), STATE_FILE)
        write_atomically(place, archived)

    def backup(self, name: str) -> bytes | None:
        """Return what an attempt at a unit had; None for nothing."""
        try:
            kept = self._read(self._name_in("backups", name))
            require_run(kept)
        except (FileNotFoundError, NotARunError):  # damaged by a loss of power
            return None
        return kept

    def attempts_before(self) -> dict[str, list[AttemptState]]:
        """Return the attempts that commands before this one made, by the name of their unit.

        They are counted on, since one whose head was lost may still be at work. Asked once, before
        anything is shown.
        """
        try:
            return {unit.name: unit.attempts for unit in self.shown().units}
        except UserError:
            return {}

    def keep_log(self, name: str, number: int, said: str) -> None:
        """Keep what an attempt said."""
        write_atomically(self._of_unit("logs", name, f"-{number}.txt"), said.encode())

    def drained(self, hosts: Iterable[str]) -> list[str]:
        """Return those of some hosts that get no further work, as somebody asked, sorted.

        Raises:
            UserError: a link leads out of the folder.

        """
        return sorted(host for host in set(hosts) if self._drained_file(host).is_file())

    def drain(self, host: str) -> None:
        """Give a host no further work; whoever works on the fleet looks every moment.

        The folder is locked by then, so each host has a file of its own, which no other command
        reads to write it again.

        Raises:
            UserError: somebody else's file or link is in the way.

        """
        file = self._drained_file(host)
        if os.path.lexists(file.parent) and not file.parent.is_dir():
            raise UserError(f"{file.parent} is no folder: move it away")
        write_atomically(file, json.dumps(host).encode())

    def undrain(self, host: str) -> None:
        """Give a host work again, whoever has written that it gets none.

        Raises:
            UserError: a link leads out of the folder.

        """
        file = self._drained_file(host)
        if file.is_file():
            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                file.parent.rmdir()

    def _drained_file(self, host: str) -> Path:
        """Return the file that is there of a drained host, whatever that is called."""
        name = hashlib.sha256(host.encode()).hexdigest()[:16]
        return path_inside(self.path, f"{DRAINED}/{name}")

    def shown(self) -> FleetState:
        """Return the state that was shown last.

        Raises:
            UserError: there is none, or it is damaged.

        """
        if not (self.path / STATE).exists():
            if (self.path / REQUEST).is_file():
                raise UserError(f"the work of {self.path} has not begun: ask again in some seconds")
            raise UserError(
                f"there is no {self.path}: name the --out of a command that was given --fleet"
            )
        return _READER.read(RunDirectory(self.path).inside(STATE))

    def _read(self, name: str) -> bytes:
        """Return the content of a file in the folder, which may come from others.

        Raises:
            UserError: it leads out of the folder, is no regular file, or too large.
            OSError: it cannot be read.

        """
        return RunDirectory(self.path).read(name)

    def show(self, state: FleetState) -> None:
        """Write what people see of the state."""
        write_atomically(self.path / STATE, json.dumps(plain_json(state), indent=1).encode())
        write_atomically(self.path / PAGE, fleet_page(state).encode())


def _contradictions(state: FleetState) -> Iterator[str]:
    tried = {unit.name for unit in state.units if unit.attempts}
    for place in state.places:
        if place.unit and place.unit not in tried:
            yield f"{place.place!r} works on {place.unit!r}, which is no unit with an attempt"


_READER = DocumentReader(FleetState, _contradictions)


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
            _text(place.place),
            _text(place.unit),
            _number(place.units),
            _number(place.busy_seconds),
            _number(100 * state.busy_share(place)),
            f'<span class="bad">{_text(why)}</span>' if (why := state.why_idle(place)) else "",
        )
        for place in state.places
    ]
    return _table(
        ("device", "works on", "units", "busy s", "busy %", "no further work, because"), rows
    )


def _units(units: Sequence[UnitState]) -> str:
    rows = []
    for unit in units:
        tries = "<br>".join(
            f"{attempt.number}: {_text(attempt.device)} on {_text(attempt.host)},"
            f" {attempt.seconds:.0f} s {_text(attempt.outcome)}"
            for attempt in unit.attempts
        )
        colour = "bad" if unit.status == "given-up" else unit.status
        status = f'<span class="{_text(colour)}">{_text(in_words(unit.status))}</span>'
        searched = f"{unit.ended} of {unit.seeds}"
        name, device_class = _text(unit.name), _text(unit.device_class)
        rows.append((name, device_class, status, searched, _number(unit.found), tries))
    header = ("unit", "device class", "status", "searched", "found", "attempts")
    return _table(header, rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{title}</th>" for title in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _text(value: str) -> str:
    return escape(printable(value))
