"""Planting a fault of a kernel, running `edgeflare conform`, and comparing what it finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kernel_faults
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operators.operator_catalogue import known_operators
from faulty_agent import faulty_agent
from forked_commands import forked_edgeflare
from kernel_fault_catalogue import KernelFault, fresh_configurations, settings_of

AGREES = 0.95
"""Of fresh models, on which a condition that was found has to agree with the planted one."""

_FRESH = 1000
_HANG_SECONDS = 2
"""What an input of the faulty device may take. A sound one takes milliseconds."""

_SPARE_SECONDS = 300
"""What opening, the last round and writing may take beside the time limit."""


@dataclass
class TriedFault:
    """What a conformance run made of a fault.

    Attributes:
        fault: which.
        found: whether anything counts, or is undefined where the fault is of that kind.
        in_cell: whether that is said of the fault's operator and type.
        agreement: the share of fresh models of these on which the conditions of all findings
            there, any of which holds, agree with the planted one.
        conditions: of these findings.
        elsewhere: findings that count for other operators or types.
        models: that the run tried.
        seconds: that it took.
        errors: what went wrong.

    """

    fault: KernelFault
    found: bool = False
    in_cell: bool = False
    agreement: float = 0.0
    conditions: list[list[str]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    models: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def right_condition(self) -> bool:
        """Whether the condition is the planted one."""
        return self.in_cell and self.agreement >= AGREES


def tried(fault: KernelFault, time_limit: str, rng_seed: int, *options: str) -> TriedFault:
    """Plant a fault and run `edgeflare conform` for a time such as "2m"."""
    began = time.monotonic()
    result = TriedFault(fault)
    with tempfile.TemporaryDirectory(prefix="edgeflare-kernel-fault-") as name:
        folder = Path(name)
        (folder / "spec.json").write_text(json.dumps([asdict(fault)]))
        launcher = [sys.executable, kernel_faults.__file__, f"{folder}/spec.json"]
        with faulty_agent(folder, launcher, f"input_timeout_seconds = {_HANG_SECONDS}") as device:
            try:
                arguments = ["--time-limit", time_limit, "--rng-seed", str(rng_seed), *options]
                document = _conform(folder, device, arguments)
                compare(result, document)
            except (subprocess.SubprocessError, OSError) as error:
                result.errors.append(f"{error} {getattr(error, 'stderr', '')}")
    result.seconds = time.monotonic() - began
    return result


def compare(result: TriedFault, document: Mapping[str, Any]) -> None:
    """Compare what a run's document says with the fault that was planted."""
    fault = result.fault
    verdict = fault.what.verdict
    telling = [
        one
        for one in document["findings"]
        if one["verdict"] == verdict and (one["counted"] or verdict == "undefined")
    ]
    result.models, result.found = document["models"], bool(telling)
    cell = fault.operator, fault.type
    here = [one for one in telling if (one["operator"], one["type"]) == cell]
    result.in_cell = bool(here)
    result.conditions = [list(one["condition"]) for one in here]
    result.elsewhere = [
        f"{one['operator']} {one['type']}: {one['verdict']}, {one['detail']}"
        for one in document["findings"]
        if one["counted"] and (one["operator"], one["type"]) != cell
    ]
    if here:
        result.agreement = agreement(fault, result.conditions)


def agreement(fault: KernelFault, conditions: Sequence[Sequence[str]]) -> float:
    """Return the share of fresh models for which any condition holds if the planted one does."""
    specification = known_operators()[fault.operator]
    rng = np.random.default_rng(_FRESH)
    fresh = fresh_configurations(specification, fault.type, rng, _FRESH)
    table = SettingsTable([settings_of(specification, fault.type, one) for one in fresh])
    held = np.zeros(len(fresh), np.bool_)
    for one in conditions:
        held |= FaultCondition.parsed(one).held(table)
    return float(np.mean(held == FaultCondition.parsed(fault.condition).held(table)))


def _conform(folder: Path, device: str, options: Sequence[str]) -> dict[str, Any]:
    completed = subprocess.run(
        [
            *(forked_edgeflare(), "conform", "--device", device),
            *("--out", "run", "--trust", *options),
        ],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=_seconds(options) + _SPARE_SECONDS,
        check=False,
    )
    if completed.returncode not in (0, 1):
        raise OSError(f"exit code {completed.returncode}: {completed.stderr}")
    document: dict[str, Any] = json.loads((folder / "run" / "conform.json").read_bytes())
    return document


def _seconds(options: Sequence[str]) -> float:
    """Return the time limit among options, such as "2m"."""
    written = options[options.index("--time-limit") + 1]
    return float(written[:-1]) * {"s": 1, "m": 60, "h": 3600}[written[-1]]
