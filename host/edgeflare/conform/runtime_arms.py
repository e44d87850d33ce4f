"""The kernel sets of released versions of the runtime, and models judged there.

Each answer is held to exact arithmetic alone, whatever other kernels answer, so that versions are
compared by one measure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edgeflare.conform.conformance_arms import open_conformance
from edgeflare.conform.drafts.draft import DraftNode
from edgeflare.conform.execution.kernel_arm import KernelArm, PosedModel
from edgeflare.conform.execution.model_opener import HOST_KERNELS, HostOpener
from edgeflare.conform.execution.pack_runner import INVALID_COMMANDS
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.graphs.graph_verdict import invocation_told, judged_on
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_document import FoundFault
from edgeflare.conform.record.finding_files import StoredModel
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.verdict.kernel_judgement import BESIDE_OTHERS, KernelJudgement
from edgeflare.conform.verdict.operator_verdict import judged
from edgeflare.devices.profile_lookup import find_shipped_profile
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.models.agent_code import link_packages
from edgeflare.models.runtime_versions import PACKAGES, package_of, runtime_python
from edgeflare_protos.kernel_sets import FIRST_COMPILED, Kernels

_INPUT_SECONDS = 4.0

COMPILED_KERNELS: Final[tuple[Kernels, ...]] = ("compiled-cpu", "gpu")
"""Kernel sets of compiled models that versions are tried on; an NPU's are bound to one version."""


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """A released version of the runtime that is installed here.

    Attributes:
        version: the number of the version.
        package: the package that has it.
        python: the interpreter that has it.

    """

    version: str
    package: str
    python: Path

    @property
    def order(self) -> tuple[int, ...]:
        """What orders versions, those of the older package first."""
        return -PACKAGES.index(self.package), *map(int, self.version.split("."))


@dataclass(frozen=True, slots=True)
class RuntimeArm:
    """A kernel set of a version.

    Attributes:
        runtime: the version.
        kernels: the kernel set.
        arm: runs models there.

    """

    runtime: RuntimeVersion
    kernels: Kernels
    arm: KernelArm

    @property
    def name(self) -> str:
        """What it is called: "xnnpack@2.2.0"."""
        return f"{self.kernels}@{self.runtime.version}"


def installed_versions(
    versions: Sequence[str], tell: Callable[[str], None]
) -> list[RuntimeVersion]:
    """Return versions of the runtime, from the oldest; install those that are not there.

    What has no wheel for any Python here is told in a line, and left out.

    Args:
        versions: their numbers.
        tell: is told what is installed, and what is left out.

    Raises:
        UserError: none is left.
        InfrastructureError: pip fails.

    """
    found = []
    for version in versions:
        try:
            python = runtime_python(version, tell)
        except UserError as error:
            tell(str(error))
            continue
        found.append(RuntimeVersion(version, package_of(python), python))
    if not found:
        raise UserError(f"--versions {','.join(versions)}: none of them can be installed here")
    return sorted(found, key=lambda runtime: runtime.order)


@contextmanager
def runtime_arms(
    runtimes: Sequence[RuntimeVersion],
    kernel_sets: Sequence[Kernels] = HOST_KERNELS,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Iterator[RuntimeArm]]:
    """Make ready kernel sets of versions in turn: each is closed when the next one is asked for.

    So one agent is there at a time. What a version does not offer is left out; where it should, but
    cannot, that is told in a line.

    Args:
        runtimes: the versions.
        kernel_sets: the kernel sets.
        tell: is told what is left out.

    """

    def in_turn() -> Generator[RuntimeArm, None, None]:
        for runtime in runtimes:
            for kernels in kernel_sets:
                with ExitStack() as stack:
                    if (arm := _opened(runtime, kernels, packages, stack, tell)) is not None:
                        yield RuntimeArm(runtime, kernels, arm)

    with _packages() as packages, closing(in_turn()) as arms:
        yield arms


@contextmanager
def runtime_arms_together(
    runtimes: Sequence[RuntimeVersion],
    kernel_sets: Sequence[Kernels] = HOST_KERNELS,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[list[RuntimeArm]]:
    """Make ready kernel sets of versions beside each other; see `runtime_arms`."""
    with _packages() as packages, ExitStack() as stack:
        opened = (
            (runtime, kernels, _opened(runtime, kernels, packages, stack, tell))
            for runtime in runtimes
            for kernels in kernel_sets
        )
        yield [
            RuntimeArm(runtime, kernels, arm) for runtime, kernels, arm in opened if arm is not None
        ]


@contextmanager
def _packages() -> Iterator[Path]:
    """Link the packages that a version's worker needs into a folder."""
    with TemporaryDirectory(prefix="edgeflare-runtimes-") as folder:
        packages = Path(folder, "packages")
        link_packages(packages)
        yield packages


def _opened(
    runtime: RuntimeVersion,
    kernels: Kernels,
    packages: Path,
    stack: ExitStack,
    tell: Callable[[str], None],
) -> KernelArm | None:
    """Return a kernel set of a version, which the stack closes.

    Those of the interpreter start when they run something. A compiled model's are reached by an
    agent of the version, which starts here.
    """
    if kernels not in HOST_KERNELS:
        return _behind_agent(runtime, kernels, stack, tell)
    launcher = ("env", "-u", "PYTHONHOME", f"PYTHONPATH={packages}", str(runtime.python))
    arm = PackingArm(HostOpener(kernels, launcher, _INPUT_SECONDS))
    stack.callback(arm.close)
    return arm


def _behind_agent(
    runtime: RuntimeVersion, kernels: Kernels, stack: ExitStack, tell: Callable[[str], None]
) -> KernelArm | None:
    """Return a compiled model's kernel set in a version, behind an agent that the stack stops."""
    if runtime.package != PACKAGES[0] or runtime.order[1:] < FIRST_COMPILED:
        return None
    own = str(runtime.python) == sys.executable
    profile = find_shipped_profile(f"emulated-{kernels}")
    versioned = replace(profile, python=None if own else str(runtime.python))
    try:
        return open_conformance(versioned, stack, lambda: False).arms[0]
    except EdgeFlareError as error:
        tell(f"{kernels} of {runtime.version}: {error}")
        return None


def judged_alone(node: DraftNode, model: PosedModel, arm: KernelArm) -> KernelJudgement:
    """Return what is said of a model of one operator by exact arithmetic alone."""
    (answer,) = arm.run([model])
    specification = known_operators()[node.operator]
    return judged(specification, node.type, model.graph, model.operands, {DEVICE: answer})


def judged_stored(stored: StoredModel, arm: KernelArm) -> KernelJudgement:
    """Return what is said of a finding's model: of a graph, whether it answers as one by one.

    Args:
        stored: the model.
        arm: what runs it.

    """
    whole = stored.whole
    if not stored.is_graph:
        return judged_alone(stored.draft.nodes[0], whole, arm)
    return judged_on(whole, arm, invocation_told(stored.finding.arrangement))


def shows_only(finding: FoundFault) -> str | None:
    """Return where a finding shows that one run of its model alone does not show; None of others.

    In words that follow "shows only".
    """
    if finding.symptom in BESIDE_OTHERS:
        return "beside other models in the same process"
    if not finding.smallest.repeats:
        return "at times, and not again when its model was run once more"
    return "in what an accelerator's driver logs" if INVALID_COMMANDS in finding.detail else None
