"""Attempts carried by Ray: a task for each, on the host of its device, which has our versions."""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any, TypedDict

import ray
from ray.exceptions import ActorUnavailableError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import edgeflare_protos
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.cluster.attempt_engine import EndedAttempt
from edgeflare.fleet.cluster.ray_cluster import MODE, NAMESPACE, require_answer
from edgeflare.fleet.fleet_file import DevicePlace, Fleet, FleetHost
from edgeflare.fleet.work.unit_attempt import (
    AttemptOrder,
    AttemptReport,
    AttemptResult,
    run_attempt,
)
from edgeflare.python_callable import reason

_COLLECTOR = "fleet-"
_REPORT_SECONDS = 30.0
"""The longest that an attempt waits for the head before it goes on without."""

_COLLECTOR_SECONDS = 120.0
"""The longest that the command waits for its own collector, which may just be starting again, or
for the name of one that a killed command has left."""

_LOOK_SECONDS = 2.0
"""Interval between looks at whether the head is still there, while something does not answer."""

_RESULT_SECONDS = 120.0
"""The longest that the result of an attempt, which is here already, takes to be read."""

_RAY_SECONDS = 180.0
"""Time in which a call of Ray returns, if ever; all calls have shorter limits of their own."""

_NODES_SECONDS = 2.0
"""Time for which what is known of the hosts is taken for true, as all places are asked in a row."""


class _ReportCollector:
    """Takes reports of attempts, on the host of the command, and tells them whether to go on.

    Its process may be killed and start again: all that it has to know is told at each visit.
    """

    def __init__(self) -> None:
        self._reports: dict[str, AttemptReport] = {}
        self._current: dict[str, int] | None = None  # not told yet
        self._stopped = False

    def report(self, report: AttemptReport) -> bool:
        """Take a report; return whether its attempt goes on."""
        if self._current is not None and self._current.get(report.unit) != report.number:
            return False
        # One for each unit, with the last backup: whatever happens, no more is kept here.
        before = self._reports.get(report.unit)
        if report.backup is None and before is not None and before.number == report.number:
            report = replace(report, backup=before.backup)
        if before is None or before.number <= report.number:
            self._reports[report.unit] = report
        return not self._stopped

    def visit(self, current: dict[str, int], stopped: bool) -> list[AttemptReport]:
        """Hear what is known, and return the reports since the last visit.

        Args:
            current: the last attempt at each unit, which fences off those before.
            stopped: whether all attempts are to end.

        """
        taken, self._reports = list(self._reports.values()), {}
        self._current, self._stopped = current, stopped
        return taken


def _attempt(
    collector: Any,
    order: AttemptOrder,
    words: Sequence[str],
    versions: dict[str, str],
    backup: bytes | None,
    *given: bytes,
) -> AttemptResult:
    """Make an attempt; runs on the host of its device.

    Args:
        collector: where it reports.
        order: what is done.
        words: words that stand for what the head gives.
        versions: versions of the head, which this host has to have too.
        backup: what an earlier attempt had; None for nothing.
        given: what the head gives, in the order of their words.

    """
    if different := version_difference(host_versions(), versions):
        raise UserError(f"{platform.node()} {different}")  # it has joined since the command began

    def report(report: AttemptReport) -> bool:
        try:
            return bool(ray.get(collector.report.remote(report), timeout=_REPORT_SECONDS))
        except ray.exceptions.ActorDiedError:
            return False  # the head is gone: what is done so far is in the last backup
        except RayError:
            return True

    return run_attempt(order, dict(zip(words, given, strict=True)), backup, report)


def _versions_and_authentication() -> tuple[dict[str, str], str]:
    return host_versions(), os.environ.get(MODE, "")


@contextmanager
def _reaching() -> Iterator[None]:
    """Say of whatever Ray raises that the cluster is not reached any more."""
    try:
        yield
    except (RayError, ConnectionError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:300]
        raise InfrastructureError(
            f"the cluster is not reached any more: {type(error).__name__}: {said}"
        ) from None


class RayEngine:
    """Carries attempts by Ray; the process is connected to a cluster."""

    def __init__(self, fleet: Fleet, classes: Sequence[str], campaign: str) -> None:
        """Make the collector that attempts report to, on this host.

        Args:
            fleet: the hosts.
            classes: classes of devices that attempts ask for, resources of the hosts.
            campaign: the fingerprint of what is done.

        Raises:
            UserError: another command does the same in this cluster.

        """
        self._fleet, self._classes = fleet, tuple(classes)
        with _reaching():
            self._here: str = ray.get_runtime_context().get_node_id()
            self._head: str = ray.get_runtime_context().gcs_address
        self._collector = self._make_collector(f"{_COLLECTOR}{campaign}")
        self._made: Any = ray.remote(_attempt)  # once: making it tells the whole cluster of it
        self._under_way: dict[Any, tuple[str, int]] = {}
        self._numbers: dict[str, int] = {}
        self._lost: list[EndedAttempt] = []
        self._reports: list[AttemptReport] = []
        self._stopped = False
        self._given: dict[str, tuple[bytes, Any]] = {}
        self._nodes: dict[str, _Node] = {}
        self._nodes_at = -math.inf

    def _make_collector(self, name: str) -> Any:
        made: Any = ray.remote(_ReportCollector)
        options = made.options(
            name=name,
            namespace=NAMESPACE,
            num_cpus=0,
            max_restarts=-1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(self._here, soft=False),
        )
        deadline = time.monotonic() + _COLLECTOR_SECONDS
        while True:
            try:
                return options.remote()
            except ValueError:  # the name is taken: by a command that was killed, for a moment
                if time.monotonic() > deadline:
                    raise UserError(
                        "another command does the same search in this cluster: wait for its end"
                    ) from None
                time.sleep(1.0)
            except (RayError, ConnectionError, RuntimeError) as error:
                raise InfrastructureError(f"the cluster is not reached: {error}") from None

    def require_same_versions(self) -> None:
        """Refuse hosts that run other versions than this one, or do not offer their devices.

        Raises:
            UserError: a host does; names it and the version.
            InfrastructureError: a host does not answer, or none of them takes part.

        """
        self._require_any()
        mine, asked = host_versions(), {}
        ask: Any = ray.remote(_versions_and_authentication)
        for node in self._listed():  # whoever takes part, also a head that has no devices
            if not node["Alive"]:
                continue
            here, address = node["NodeID"] == self._here, str(node["NodeManagerAddress"])
            known = {host.address: host.name for host in self._fleet.hosts}
            name = known.get("" if here and "" in known else address, address)
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            with _reaching():
                asked[name] = ask.options(num_cpus=0, scheduling_strategy=strategy).remote()
        for host in self._fleet.hosts:
            if (of_host := self._node(host.name)) is not None:
                self._require_offered(host, of_host)
        for name, reference in asked.items():
            try:
                theirs, mode = ray.get(reference, timeout=_COLLECTOR_SECONDS)
            except RayError as error:
                raise InfrastructureError(
                    f"{name} does not answer: {' '.join(str(error).split())[:300]}"
                ) from None
            if different := version_difference(theirs, mine):
                raise UserError(f"{name} {different}")
            if mode != "token":
                raise UserError(
                    f"anybody may take part in the cluster of {name}: set {MODE}=token wherever"
                    " `ray start` runs (docs/fleet.md)"
                )

    def _require_any(self) -> None:
        """Refuse a fleet none of whose hosts takes part, which an address may be to blame for."""
        if any(self._node(host.name) is not None for host in self._fleet.hosts):
            return
        named = ", ".join(f"{host.name} ({host.address})" for host in self._fleet.hosts)
        there = ", ".join(
            str(node["NodeManagerAddress"]) for node in self._listed() if node["Alive"]
        )
        raise InfrastructureError(
            f"no host of the fleet takes part in the cluster: fleet.toml has {named}, and the"
            f" cluster has {there}: start Ray there, or give each host the address that Ray has"
            ' for it, which it prints as it starts ("Local node IP")'
        )

    def _require_offered(self, host: FleetHost, node: _Node) -> None:
        """Refuse a host whose daemon does not know of its devices: attempts would wait for ever."""
        for class_ in self._classes:
            wanted = len(host.devices.get(class_, ()))
            offered = int(node["Resources"].get(class_, 0))
            if offered < wanted:
                raise UserError(
                    f"{host.name} offers {offered} {class_} to the cluster, and fleet.toml says"
                    f" {wanted}: start Ray there with --resources='{{\"{class_}\": {wanted}}}'"
                )

    def start(
        self,
        place: DevicePlace,
        order: AttemptOrder,
        given: Mapping[str, bytes],
        backup: bytes | None,
    ) -> None:
        """Begin an attempt at a place; see `run_attempt`."""
        self._numbers[order.unit] = order.number
        node = self._node(place.host)
        if node is None:  # it was there a moment ago
            why = f"{place.host} takes no part in the cluster"
            self._lost.append(EndedAttempt(order.unit, order.number, None, why))
            return
        self._visit()  # which fences off the attempts before
        task = self._made.options(
            num_cpus=0,
            max_retries=0,
            resources={place.device_class: 1},
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        with _reaching():
            put = [self._put(word, archived) for word, archived in given.items()]
            told = (self._collector, order, tuple(given), host_versions(), backup, *put)
            reference = self._asked(lambda: task.remote(*told))
        self._under_way[reference] = (order.unit, order.number)

    def _put(self, word: str, archived: bytes) -> Any:
        """Hand what many attempts are given to the cluster, once for all of them."""
        kept = self._given.get(word)
        if kept is None or kept[0] is not archived:
            kept = self._given[word] = archived, self._asked(lambda: ray.put(archived))
        return kept[1]

    def give_up(self, unit: str) -> None:
        """End the attempt at a unit, of which nothing has been heard for long."""
        for reference, (name, _) in self._under_way.items():
            if name == unit:
                with _reaching():
                    self._asked(lambda: ray.cancel(reference, force=True))  # noqa: B023

    def ended(self, seconds: float) -> Sequence[EndedAttempt]:
        """Return the attempts that ended, waiting at most so many seconds for the first."""
        lost, self._lost = self._lost, []
        if lost or not self._under_way:
            return lost
        references = list(self._under_way)
        with _reaching():
            done, _ = self._asked(lambda: ray.wait(references, timeout=seconds))
            if done:  # and whatever else has
                count = len(references)
                done, _ = self._asked(lambda: ray.wait(references, num_returns=count, timeout=0))
        return [self._collect(reference) for reference in done]

    def _collect(self, reference: Any) -> EndedAttempt:
        unit, number = self._under_way.pop(reference)
        if self._numbers.get(unit) == number:
            del self._numbers[unit]  # whatever still reports for it is told to end
        try:
            result: AttemptResult = self._asked(lambda: ray.get(reference, timeout=_RESULT_SECONDS))
            return EndedAttempt(unit, number, result)
        except RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, UserError):
                return EndedAttempt(unit, number, None, str(cause), refused=True)
            why = type(error).__name__
            if isinstance(cause, Exception):
                why = reason(cause)[:300]
            return EndedAttempt(unit, number, None, why)

    def reports(self) -> Sequence[AttemptReport]:
        """Return what attempts have reported since the last call."""
        self._visit()
        taken, self._reports = self._reports, []
        return taken

    def _visit(self) -> None:
        """Tell the collector what it has to know, and take what it has."""
        deadline = time.monotonic() + _COLLECTOR_SECONDS
        while True:
            try:
                told = self._asked(
                    lambda: self._collector.visit.remote(dict(self._numbers), self._stopped)
                )
                taken = self._asked(lambda: ray.get(told, timeout=_COLLECTOR_SECONDS))  # noqa: B023
            except ActorUnavailableError as error:  # it was killed, and starts again
                require_answer(self._head)
                if time.monotonic() > deadline:
                    raise InfrastructureError(
                        f"the collector of the attempts' reports is gone: {error}"
                    ) from None
                time.sleep(0.2)
            except (RayError, ConnectionError) as error:
                said = " ".join(str(error).split())[:300]
                raise InfrastructureError(f"the cluster is not reached any more: {said}") from None
            else:
                self._reports += taken
                return

    def _asked(self, call: Callable[[], Any]) -> Any:
        """Return what a call of Ray returns, which may never do so where the head is gone."""
        answer: Future[Any] = Future()

        def ask() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=ask, daemon=True).start()
        deadline = time.monotonic() + _RAY_SECONDS
        while not wait([answer], _LOOK_SECONDS).done:
            require_answer(self._head)
            if time.monotonic() > deadline:
                raise InfrastructureError("Ray does not answer on this host: see `ray status`")
        return answer.result()

    def is_up(self, place: DevicePlace) -> bool:
        """Whether a device's host takes part in the cluster right now, and offers its class."""
        node = self._node(place.host)
        return node is not None and node["Resources"].get(place.device_class, 0) >= 1

    def stop(self) -> None:
        """Ask all attempts to end as Ctrl-C would."""
        self._stopped = True
        self._visit()

    def _node(self, host: str) -> _Node | None:
        """Return what Ray knows of a host; None where that takes no part right now."""
        now = time.monotonic()
        if now - self._nodes_at >= _NODES_SECONDS:
            alive = [node for node in self._listed() if node["Alive"]]
            self._nodes = {node["NodeManagerAddress"]: node for node in alive}
            for node in alive:
                if node["NodeID"] == self._here:
                    self._nodes[""] = node
            self._nodes_at = now
        return self._nodes.get(self._fleet.host(host).address)

    def _listed(self) -> list[_Node]:
        """Return what the head knows of all hosts.

        Raises:
            InfrastructureError: the head is gone, for which Ray would wait without end.

        """
        require_answer(self._head)
        listed: Any = ray.nodes  # which says nothing of its types
        with _reaching():
            return list(self._asked(listed))


class _Node(TypedDict):
    """What Ray tells of a host, as far as it is read here."""

    NodeID: str
    NodeManagerAddress: str
    Alive: bool
    Resources: dict[str, float]


def host_versions() -> dict[str, str]:
    """Return the versions of this host, by the name of what has them."""
    return {
        "Python": platform.python_version(),
        "Ray": version("ray"),
        "EdgeFlare": edgeflare_protos.__version__,
    }


def version_difference(theirs: Mapping[str, str], mine: Mapping[str, str]) -> str:
    """Return in what another host differs, as the end of a sentence about it; empty for nothing.

    Args:
        theirs: the versions of the other host.
        mine: those of the host of the command.

    """
    for what, version_here in mine.items():
        if theirs.get(what) != version_here:
            return (
                f"has {what} {theirs.get(what)}, and the host of the command {version_here}:"
                " install the same on all hosts of a fleet"
            )
    return ""
