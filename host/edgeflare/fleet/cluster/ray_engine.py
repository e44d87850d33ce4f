"""Attempts carried by Ray: a task for each, on the host of its device."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import edgeflare
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.cluster.attempt_engine import EndedAttempt
from edgeflare.fleet.cluster.ray_cluster import NAMESPACE
from edgeflare.fleet.plan.fleet_file import Fleet, Place
from edgeflare.fleet.work.unit_attempt import (
    AttemptOrder,
    AttemptReport,
    AttemptResult,
    run_attempt,
)

_DESK = "fleet-"
_REPORT_SECONDS = 30.0
"""The longest that an attempt waits for the head before it goes on without."""


class _ReportDesk:
    """Takes reports of attempts, on the host of the command, and tells them whether to go on."""

    def __init__(self) -> None:
        self._reports: list[AttemptReport] = []
        self._current: dict[str, int] = {}
        self._stopped = False

    def expect(self, unit: str, number: int) -> None:
        """Fence off all attempts at a unit before this one."""
        self._current[unit] = number

    def report(self, report: AttemptReport) -> bool:
        """Take a report; return whether its attempt goes on."""
        if self._current.get(report.unit) != report.number:
            return False
        self._reports.append(report)
        return not self._stopped

    def take(self) -> list[AttemptReport]:
        """Return the reports since the last call."""
        taken, self._reports = self._reports, []
        return taken

    def stop(self) -> None:
        """Have all attempts end."""
        self._stopped = True


def _attempt(
    desk: Any, order: AttemptOrder, screening: bytes | None, backup: bytes | None
) -> AttemptResult:
    """Make an attempt; runs on the host of its device."""

    def report(one: AttemptReport) -> bool:
        try:
            return bool(ray.get(desk.report.remote(one), timeout=_REPORT_SECONDS))
        except ray.exceptions.ActorDiedError:
            return False  # the head is gone: what is done so far is in the last backup
        except RayError:
            return True

    return run_attempt(order, screening, backup, report)


def _versions() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "Ray": ray.__version__,
        "EdgeFlare": edgeflare.__version__,
    }


class RayEngine:
    """Carries attempts by Ray; the process is connected to a cluster."""

    def __init__(self, fleet: Fleet, device_class: str, campaign: str) -> None:
        """Make the desk that attempts report to, on this host.

        Args:
            fleet: the hosts.
            device_class: what attempts ask for, a resource of the hosts.
            campaign: the fingerprint of what is done.

        """
        here = ray.get_runtime_context().get_node_id()
        pinned = NodeAffinitySchedulingStrategy(here, soft=False)
        self._fleet, self._class = fleet, device_class
        made: Any = ray.remote(_ReportDesk)
        self._desk: Any = made.options(
            name=f"{_DESK}{campaign}",
            namespace=NAMESPACE,
            num_cpus=0,
            scheduling_strategy=pinned,
        ).remote()
        self._here = here
        self._under_way: dict[Any, tuple[str, int]] = {}
        self._screening: Any = None

    def require_same_versions(self) -> None:
        """Refuse hosts that run other versions than this one.

        Raises:
            UserError: a host does; names it and the version.
            InfrastructureError: a host does not answer.

        """
        mine = _versions()
        for host in self._fleet.hosts:
            node = self._node(host.name)
            if node is None:
                continue
            ask: Any = ray.remote(_versions)
            asked = ask.options(num_cpus=0, scheduling_strategy=node).remote()
            try:
                theirs = ray.get(asked, timeout=120)
            except RayError as error:
                raise InfrastructureError(f"{host.name} does not answer: {error}") from None
            for what, version in mine.items():
                if theirs.get(what) != version:
                    raise UserError(
                        f"{host.name} has {what} {theirs.get(what)}, and this host {version}:"
                        " install the same on all hosts of a fleet"
                    )

    def start(
        self, place: Place, order: AttemptOrder, screening: bytes | None, backup: bytes | None
    ) -> None:
        """Begin an attempt at a place."""
        if screening is not None and self._screening is None:
            self._screening = ray.put(screening)  # once for all attempts
        node = self._node(place.host)
        ray.get(self._desk.expect.remote(order.unit, order.number))
        made: Any = ray.remote(_attempt)
        task = made.options(
            num_cpus=0, max_retries=0, resources={self._class: 1}, scheduling_strategy=node
        )
        given = None if screening is None else self._screening
        reference = task.remote(self._desk, order, given, backup)
        self._under_way[reference] = (order.unit, order.number)

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:
        """Return the attempts that ended, waiting at most so many seconds for the first."""
        if not self._under_way:
            return ()
        done, _ = ray.wait(list(self._under_way), timeout=seconds)
        return [self._collect(reference) for reference in done]

    def _collect(self, reference: Any) -> EndedAttempt:
        unit, number = self._under_way.pop(reference)
        try:
            return EndedAttempt(unit, number, ray.get(reference))
        except RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, UserError):
                raise UserError(str(cause)) from None
            return EndedAttempt(unit, number, None, type(error).__name__)

    def reports(self) -> Sequence[AttemptReport]:
        """Return what attempts have reported since the last call."""
        return list(ray.get(self._desk.take.remote()))

    def is_up(self, host: str) -> bool:
        """Whether a host takes part in the cluster right now."""
        return self._node(host) is not None

    def stop(self) -> None:
        """Ask all attempts to end as Ctrl-C would."""
        ray.get(self._desk.stop.remote())

    def _node(self, host: str) -> NodeAffinitySchedulingStrategy | None:
        """Return what has a task run on a host; None where that takes no part right now."""
        address = self._fleet.host(host).address
        if not address:
            return NodeAffinitySchedulingStrategy(self._here, soft=False)
        known: Any = ray.nodes  # which says nothing of its types
        for node in known():
            if node["Alive"] and node["NodeManagerAddress"] == address:
                return NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        return None
