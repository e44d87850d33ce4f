"""What has to be the same where a repair goes on."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import msgspec

from edgeflare.devices.decisive_provenance import DEVICE_DECIDES, HOST_DECIDES, decisive_changes
from edgeflare.devices.provenance import Provenance
from edgeflare.errors import UserError
from edgeflare.models.run_host import RunHost
from edgeflare.record.request import Option, require_same_request
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.shift_details import Mixture


class AskedShifts(msgspec.Struct, frozen=True):
    """What was asked of shifts.

    Attributes:
        rounds: searches from each seed for near-boundary inputs.
        mixture: the shares of inputs that shifts are fitted to and cross-validated by.

    """

    rounds: int
    mixture: Annotated[Mixture, Option("--mixture")]


class RepairIdentity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a repair is about.

    Attributes:
        version: of edgeflare.
        pair: fingerprint of the pair.
        run: path of the run whose findings are mended; None without.
        findings: how many that run has.
        devices: what was known of each.
        host: what runs original and twin.
        request: what was asked.
        shifts: likewise, of shifts.

    """

    version: str
    pair: str
    run: str | None
    findings: int
    devices: tuple[Provenance, ...]
    host: RunHost
    request: RepairRequest
    shifts: AskedShifts

    def require_same(self, now: RepairIdentity, folder: Path) -> None:
        """Refuse to go on with a repair of something else.

        Args:
            now: what goes on with this one.
            folder: of both.

        Raises:
            UserError: it is; names what differs.

        """
        named = ("version", "pair", "run", "findings")
        differing = [name for name in named if getattr(self, name) != getattr(now, name)]
        for one, other in zip_longest(self.devices, now.devices):
            if one is None or other is None:
                differing.append("number of devices")
                break
            changes = decisive_changes(one, other, DEVICE_DECIDES)
            differing += [f"device, by its {change.name}," for change in changes]
        changes = decisive_changes(self.host, now.host, HOST_DECIDES)
        differing += [f"host, by its {change.name}," for change in changes]
        if differing:
            raise UserError(
                f"{folder} holds a repair with another {differing[0]}: give that as before, or"
                " name another folder with --out"
            )
        require_same_request(self.request, now.request, folder)
        require_same_request(self.shifts, now.shifts, folder)
