"""`edgeflare explain`: why a finding deviates, and where in the network it begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from edgeflare.campaign.about import About
from edgeflare.campaign.journal import Journal
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile, find_profile, find_profiles
from edgeflare.diagnose.document import EXPLANATIONS, write_explanations
from edgeflare.diagnose.explaining import Explanation, Subject
from edgeflare.diagnose.explaining import explain as explain_findings
from edgeflare.diagnose.terminal import print_explanations
from edgeflare.errors import UserError
from edgeflare.replay.past_run import PastRun

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The run directory of a search.")]
Findings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FINDING]...",
        help="Which findings: their seeds' ids, or their images. All of them if not given.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where to look, as for `edgeflare search`; the run's own devices if not given.",
    ),
]


def explain(run: Run, finding: Findings = None, device: Device = None) -> None:
    """Say why findings deviate, and where in the network it begins.

    Runs each finding on the original, on the twin under every kernel set of the host, and on the
    device, again and again; looks at the layers; writes explain.json into RUN. The run's models
    have to be where they were, and what they were.
    """
    past = PastRun.open(run)
    chosen = _chosen(past, finding or [])
    if not chosen:
        Console().print(f"{escape(str(run))} found nothing: there is nothing to explain.")
        return
    for entry in chosen:
        past.files(entry)  # which are to be what was stored
    subject = Subject(past.directory, past.about, past.pair(), _seed_rows(past))
    explanations: list[Explanation] = []
    devices: dict[str, dict[str, object]] = {}
    try:
        for profile, entries in _profiles(past.about, chosen, device):
            _explain_on(profile, subject, entries, explanations, devices)
    finally:
        # What was explained before a device was lost is kept.
        if explanations:
            explanations.sort(key=lambda one: int(one.finding["seed_id"]))
            write_explanations(past.directory, past.about, explanations, devices)
    where = str(past.directory.path / EXPLANATIONS)
    print_explanations(Console(), explanations, past.about.classes, where)


def _explain_on(
    profile: Profile,
    subject: Subject,
    entries: Sequence[dict[str, Any]],
    explanations: list[Explanation],
    devices: dict[str, dict[str, object]],
) -> None:
    """Explain findings on one device, and add what is said of them to the two collections."""
    words = f"explaining {len(entries)} findings on {escape(profile.name)}"
    with Console(stderr=True).status(words) as status, connect(profile) as device:
        devices[profile.name] = device.provenance.to_json()
        for count, one in enumerate(explain_findings(subject, entries, device), 1):
            explanations.append(one)
            status.update(f"{words}: {count} of {len(entries)}")


def _chosen(past: PastRun, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the findings that are named, or all: those that were verified, and flaky ones."""
    known = {
        int(entry["seed_id"]): entry
        for key in ("deviating_seeds", "findings", "flaky", "unverified")
        for entry in past.document[key]
    }
    if not names:
        return [known[seed_id] for seed_id in sorted(known)]
    chosen = {}
    for name in names:
        stem = Path(name).stem
        seed_id = int(stem) if stem.isdecimal() else -1
        if seed_id not in known:
            some = ", ".join(map(str, sorted(known)[:10])) or "none"
            raise UserError(
                f"{name} is no finding of {past.directory.path}: name one by its seed's id, such "
                f"as these: {some}"
            )
        chosen[seed_id] = known[seed_id]
    return [chosen[seed_id] for seed_id in sorted(chosen)]


def _seed_rows(past: PastRun) -> Any:
    journal = Journal.open(past.directory.journal)
    try:
        return journal.answers("seed")
    finally:
        journal.close()


def _profiles(
    about: About, chosen: Sequence[dict[str, Any]], device: str | None
) -> list[tuple[Profile, list[dict[str, Any]]]]:
    """Return the devices to ask, each with its findings."""
    if device is not None:
        return [(find_profile(device), list(chosen))]
    own = [
        (profile, [entry for entry in chosen if entry["device"] == profile.name])
        for profile in find_profiles(about.plan.devices)
    ]
    return [(profile, entries) for profile, entries in own if entries]
