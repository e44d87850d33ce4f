"""What a candidate of a repair costs, and what refuses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import structs

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.seeds import Seeds
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.device_judgement import latency_on, refusal_by
from edgeflare.repair.fitting.quantizer import candidate_fault
from edgeflare.repair.judging.candidate_model import NAME
from edgeflare.repair.judging.judgement_inputs import JudgedSet
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_cost import CostLimit, Latency, least_limit, same_work
from edgeflare.repair.repair_document import TriedCandidate
from edgeflare.repair.repair_request import RepairRequest


@dataclass(frozen=True, slots=True)
class CandidateCheck:
    """What candidates are held to.

    Attributes:
        opened: the pair and its devices.
        request: the limits.
        seeds: the seeds to choose by.

    """

    opened: OpenedPair
    request: RepairRequest
    seeds: JudgedSet

    @property
    def size_before(self) -> int:
        """Bytes of the compressed model."""
        return self.opened.pair.compressed.stat().st_size

    def held(
        self, candidate: RepairCandidate, made: TriedCandidate, latency: Sequence[Latency] | str
    ) -> TriedCandidate:
        """Return a candidate with its cost and what it needs beyond the limits.

        Args:
            candidate: the file.
            made: what is known of it.
            latency: its time on each device, empty where it is the time before; or why it was not
                measured.

        """
        unmeasured = latency if isinstance(latency, str) else None
        times = () if isinstance(latency, str) else tuple(latency)
        needs = self._needs(candidate, times)
        said = " and ".join(f"{option} {least}" for option, least in needs.items())
        why = [f"it needs {said}"] if said else []
        if unmeasured is not None:
            why.append(f"its time was not measured, since {unmeasured}")
            return structs.replace(made, needs=needs, set_aside="; ".join(why))
        return structs.replace(
            made,
            latency=times,
            latency_ratio=max((of_device.ratio for of_device in times), default=1.0),
            needs=needs,
            set_aside=why[0] if why else None,
        )

    def known_latency(
        self, candidate: RepairCandidate, timed: Iterable[tuple[bytes, Sequence[Latency]]]
    ) -> Sequence[Latency] | None:
        """Return the time of a file with the same operators; None where there is none.

        Args:
            candidate: the file.
            timed: other files and their times. That of the model before is empty.

        """
        before = read_model_file(self.opened.pair.compressed), ()
        for content, latency in (before, *timed):
            if same_work(content, candidate.content):
                return latency
        return None

    def measured(
        self, candidate: RepairCandidate, limit: CostLimit | None = None
    ) -> tuple[Latency, ...]:
        """Measure a candidate and the model before in turns, on each device.

        Args:
            candidate: the file.
            limit: the limit of time that turns go on for; None where none is to be decided.

        """
        return tuple(
            latency_on(device, candidate.content, self.opened, self.seeds, limit)
            for device in self.opened.devices
        )

    def _needs(self, candidate: RepairCandidate, latency: Sequence[Latency]) -> dict[str, str]:
        """Return the limits that a candidate exceeds, by option, each with what it needs."""
        needs = {}
        size, time_limit = self.request.size_limit, self.request.latency_limit
        before, after = self.size_before, len(candidate.content)
        if size is not None and not size.allows(before, after):
            needs["--max-size"] = least_limit(before, after)
        slower = [
            of_device.ratio
            for of_device in latency
            if time_limit is not None and of_device.exceeds(time_limit)
        ]
        if slower:
            needs["--max-latency"] = least_limit(1.0, max(slower))
        return needs

    def fault(self, candidate: RepairCandidate) -> str | None:
        """Return why a kernel set of the host or a device does not run a candidate, if one does."""
        if not candidate.in_place:
            with TemporaryDirectory(prefix="edgeflare-") as folder:
                path = Path(folder) / NAME
                path.write_bytes(candidate.content)
                rewritten = replace(self.opened.pair, compressed=path)
                every, ids = self.opened.seeds, self.seeds.seed_ids.tolist()
                places = [every.place(id_) for id_ in ids]
                fixed = {name: rows[places] for name, rows in every.fixed.items()}
                few = Seeds(self.seeds.inputs, None, (), fixed, tuple(ids))
                fault = candidate_fault(rewritten, few)
            if fault is not None:
                return fault
        reasons = (
            refusal_by(device, candidate.content, self.opened) for device in self.opened.devices
        )
        return next(filter(None, reasons), None)
