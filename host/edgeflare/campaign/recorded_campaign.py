"""A campaign from its run directory to its written document, whatever happens on the way."""

from __future__ import annotations

from edgeflare.campaign.assembly import Assembly
from edgeflare.campaign.campaign import Interrupt, run_campaign
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.health.device_health import DeviceHealth
from edgeflare.campaign.held_out import HeldOut
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.stopwatch import Stopwatch
from edgeflare.errors import EdgeFlareError
from edgeflare.run.journal import Journal
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Document, write_document
from edgeflare.search.strategy_registry import find_strategy


def run_recorded_campaign(
    assembly: Assembly,
    plan: Plan,
    directory: RunDirectory,
    journal: Journal,
    observer: Observer,
    interrupt: Interrupt,
    chains: int,
    held_out: HeldOut | None = None,
) -> Document:
    """Run a campaign, or go on with one, and write its document.

    Args:
        assembly: the pair, opened.
        plan: what is asked.
        directory: the run directory.
        journal: the run's journal, new or to be gone on with.
        observer: sees progress.
        interrupt: the user's wish to stop.
        chains: the most chains that are open at once for each device.
        held_out: images that are only evaluated; those that the journal was told of.

    Raises:
        InfrastructureError: a device was lost for good. The document is written all the same.
        UserError: the run cannot be gone on with here. Likewise.

    """
    plan = assembly.settle(plan)
    setting = CampaignContext(
        plan=plan,
        images=assembly.seeds.images,
        labels=assembly.seeds.labels,
        panel=assembly.panel,
        recover=lambda index: assembly.devices[index].reopen(interrupt.urgent),
        health=DeviceHealth.of(
            assembly.devices, assembly.seeds.images, journal, observer, interrupt.asked
        ),
        tale=find_strategy(plan.strategy).tale,
        journal=journal,
        directory=directory,
        stopwatch=Stopwatch(journal, assembly.opening_seconds),
        observer=observer,
        chains=chains * len(assembly.devices),
        stopped=interrupt.asked,
        held_out=None if held_out is None else held_out.images.images,
    )
    journal.note("notes", list(assembly.pair.notes))
    for note in assembly.pair.notes:
        observer.warned(note)
    try:
        run_campaign(setting, interrupt)
    except EdgeFlareError:
        write_document(directory, journal)
        raise
    return write_document(directory, journal)
