"""A check as a test, whose failure says why a model may not ship.

    def test_the_release_may_ship(edgeflare):
        assert_may_ship(edgeflare.check("models/my_pair", inputs="test.npz"))

pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class CheckResult:
    """A check that has ended.

    Attributes:
        document: what check.json holds.
        path: folder of the check.

    """

    document: dict[str, Any]
    path: Path


@dataclass(frozen=True)
class CheckArguments:
    """What a test asks of a check; see `edgeflare check`."""

    pair: Path
    devices: Sequence[str]
    inputs: Path | None = None
    limit: int | None = None
    gates: Sequence[str] = ()
    gates_file: Path | None = None
    strict: bool = False
    budget: float = 300.0
    trust: bool = False
    trust_profiles: bool = False


def check_in_test(asked: CheckArguments, path: Path) -> CheckResult:
    """Check a pair into a folder; a check that is there is replaced.

    Raises:
        UserError: an argument, the pair or a device's name is not what it should be.
        InfrastructureError: a device fails.

    """
    import time  # noqa: PLC0415
    from contextlib import ExitStack  # noqa: PLC0415

    from edgeflare.check.check_run import CheckFolder, run_check  # noqa: PLC0415
    from edgeflare.check.gates import read_limits  # noqa: PLC0415
    from edgeflare.check.pair_check import (  # noqa: PLC0415
        PairCheck,
        UnobservedCheck,
        check_request,
        command_about,
    )
    from edgeflare.core.interrupt import Interrupt  # noqa: PLC0415
    from edgeflare.devices.profile_lookup import find_profiles  # noqa: PLC0415
    from edgeflare.models.pair import load_pair  # noqa: PLC0415
    from edgeflare.models.pair_file import Settings  # noqa: PLC0415
    from edgeflare.record.json_types import plain_json  # noqa: PLC0415
    from edgeflare.trust import granted  # noqa: PLC0415

    given = Settings(seeds=None if asked.inputs is None else str(asked.inputs))
    pair = load_pair(asked.pair, given, trust=asked.trust)
    profiles = find_profiles(asked.devices, granted(asked.trust or asked.trust_profiles))
    request = check_request(
        pair,
        profiles,
        read_limits(asked.gates, pair.gates, asked.gates_file),
        limit=asked.limit,
        budget=asked.budget,
        strict=asked.strict,
        near=False,
    )
    with ExitStack() as stack:
        folder = CheckFolder.begin(path, request, stack, overwrite=True, resume=False)
        named = command_about(
            str(asked.pair), str(pair.compressed), asked.inputs, request.devices[0]
        )
        job = PairCheck(pair, profiles, request, named, time.monotonic())
        document, lost = run_check(job, folder.figures, folder, UnobservedCheck(), Interrupt())
        folder.keep_page(document)
    if lost is not None:
        raise lost
    return CheckResult(plain_json(document), path)


def assert_may_ship(result: CheckResult, *, undecided: bool = False) -> None:
    """Fail unless a model may ship; the message says why not, and what to do.

    Args:
        result: result of a check.
        undecided: whether a check that decides nothing passes too.

    """
    __tracebackhide__ = True
    from msgspec import convert  # noqa: PLC0415

    from edgeflare.check.check_document import CheckDocument  # noqa: PLC0415
    from edgeflare.untrusted_text import for_terminal  # noqa: PLC0415

    said = result.document
    passes = convert(said, CheckDocument).passes
    if passes or (undecided and said["verdict"] == "undecided"):
        return
    failed = [gate for gate in said["gates"] if gate["state"] == "fail"]
    lines = [
        f"{said['verdict']}: {said['sentence']}",
        *(f"gate {gate['name']}: {gate['words']}" for gate in failed),
        f"next: {said['next']}",
        f"the check: {result.path}",
    ]
    pytest.fail(for_terminal("\n".join(lines)), pytrace=False)
