"""The same command on each kernel set of a device, one after the other, into one folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from edgeflare.campaign.pair_panel import RefusedByDevice
from edgeflare.devices.device_check import kernel_set_devices
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.matrix.matrix_folder import claimed_matrix, remove_other_runs, remove_tables
from edgeflare.trust import Trust

Result_co = TypeVar("Result_co", covariant=True)
"""What a run on one kernel set returns."""

Result = TypeVar("Result")
Conclusion = TypeVar("Conclusion")


class RunStopped(Exception):  # noqa: N818 - a wish of the user's, no mistake
    """The user stopped the run of a kernel set, so that no other begins."""


@dataclass(frozen=True, slots=True)
class KernelSetRun(Generic[Result_co]):
    """What became of one kernel set.

    Attributes:
        profile: the device with that kernel set.
        result: what the run came to; None where the device refuses the model with these kernels.
        refused: why it does, in one line; empty where it does not.

    """

    profile: Profile
    result: Result_co | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class KernelSetRunner:
    """A command on each kernel set that a device offers, with a run directory for each.

    Attributes:
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        out: the folder of the runs.
        say: tells the user which run begins, and how to go on.
        resume: whether it goes on with the runs that are there.
        overwrite: whether it replaces them.

    """

    device: str
    trust: Trust
    out: Path
    say: Callable[[str], None]
    resume: bool = False
    overwrite: bool = False

    @property
    def goes_on(self) -> str:
        """How the user goes on after it was stopped, in words."""
        return f"the same command with --out {self.out} --resume goes on"

    def run(
        self,
        run: Callable[[Profile, Path], Result],
        conclude: Callable[[list[KernelSetRun[Result]]], Conclusion],
    ) -> Conclusion | None:
        """Run it on each kernel set, and conclude; no other process works in the folder meanwhile.

        Args:
            run: runs it on one kernel set, in a run directory.
            conclude: makes something of all runs.

        Returns:
            What is concluded; None where the user stopped it.

        Raises:
            UserError: all kernel sets refuse the model, or as the run raises it.
            InfrastructureError: the device does not come up, or as the run raises it.

        """
        try:
            with claimed_matrix(self.out, resume=self.resume, overwrite=self.overwrite):
                return conclude(self._run_each(run))
        except RunStopped:
            self.say(f"stopped; {self.goes_on}")
            return None

    def look(self, look: Callable[[Profile, Path], None]) -> list[KernelSetRun[None]]:
        """Open on each kernel set what a run would open there; nothing is written."""
        profiles = kernel_set_devices(self.device, self.trust)
        return _run_on_each(profiles, lambda profile: look(profile, self.out / profile.kernels))

    def _run_each(self, run: Callable[[Profile, Path], Result]) -> list[KernelSetRun[Result]]:
        profiles = kernel_set_devices(self.device, self.trust)
        counted = iter(range(1, len(profiles) + 1))

        def announced(profile: Profile) -> Result:
            self.say(f"kernel set {next(counted)} of {len(profiles)}: {profile.name}")
            try:
                done = run(profile, self.out / profile.kernels)
            except UserError:
                raise  # what cannot be done as it was asked for costs no earlier matrix
            except BaseException:
                remove_tables(self.out)
                raise
            remove_tables(self.out)
            return done

        runs = _run_on_each(profiles, announced)
        if self.overwrite:
            remove_other_runs(
                self.out,
                {
                    kernel_set_run.profile.kernels
                    for kernel_set_run in runs
                    if not kernel_set_run.refused
                },
            )
        return runs


def _run_on_each(
    profiles: Sequence[Profile], run: Callable[[Profile], Result]
) -> list[KernelSetRun[Result]]:
    done: list[KernelSetRun[Result]] = []
    for profile in profiles:
        try:
            done.append(KernelSetRun(profile, run(profile)))
        except RefusedByDevice as refused:
            done.append(KernelSetRun(profile, refused=str(refused)))
    if all(kernel_set_run.refused for kernel_set_run in done):
        raise UserError(f"no kernel set takes the model; the first of them: {done[0].refused}")
    return done
