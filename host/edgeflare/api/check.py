"""Whether a compressed model may ship, asked from Python: `edgeflare.check`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from edgeflare.api.call_arguments import (
    device_names,
    errors_of_disks,
    if_given,
    names_of,
    naming_arguments,
    path_of,
    real_number,
    require_one_way,
    shown_progress,
    whole_number,
)
from edgeflare.api.result import Result
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.models.pair_file import Settings
from edgeflare.pages.page import Page
from edgeflare.progress import ProgressDisplay
from edgeflare.record.folder import new_folder
from edgeflare.release.causes.first_cause import find_cause
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.check_page import check_page
from edgeflare.release.check_run import check_into
from edgeflare.release.gates import gates_csv, read_limits
from edgeflare.release.model_card import ModelCard
from edgeflare.release.named_models import NamedModels
from edgeflare.release.pair_check import check_request
from edgeflare.trust import granted


@dataclass(frozen=True, repr=False)
class CheckResult(Result[CheckDocument]):
    """A check that has ended; its rows are the gates.

    Attributes:
        document: what check.json holds.
        path: folder of the check.

    """

    @property
    def may_ship(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.document.passes

    def page(self) -> Page:
        """Return what `edgeflare check` says."""
        return check_page(self.document)

    def csv(self) -> str:
        """Return the gates as comma-separated values with a header (RFC 4180)."""
        return gates_csv(self.document.gates)

    def write_card(self, path: str | PathLike[str]) -> None:
        """Write the verdict and the gates into a model card; an earlier section is replaced.

        Args:
            path: file of the card, such as the README.md of a model on Hugging Face.

        Raises:
            UserError: it is no card that can be written to.

        """
        ModelCard.read(path_of("path", path)).keep(self.document)


@naming_arguments
def check(  # noqa: PLR0913 - the options of the command
    *models: str | PathLike[str],
    inputs: str | PathLike[str] | None = None,
    device: str | Sequence[str] = "emulated-builtin",
    limit: int | None = None,
    gates: str | Sequence[str] = (),
    gates_file: str | PathLike[str] | None = None,
    strict: bool = False,
    time_limit: float = 300.0,
    near: bool = True,
    mend: bool = False,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    trust: bool = False,
    trust_profiles: bool = False,
    progress: bool = True,
) -> CheckResult:
    """Say whether a compressed model may ship; see `edgeflare check`.

    Args:
        models: a folder with a `pair.toml`; or an original and a compressed model; or a compressed
            model alone, to judge the device by it.
        inputs: an `.npz` or a folder, given as seeds are; the pair's seeds for None.
        device: name of a device, or names of several.
        limit: take so many inputs only, of each label its share.
        gates: other limits than those of the pair, such as "accuracy-drop<0.02".
        gates_file: a .toml file with a table [gates], such as one of your team.
        strict: let nothing ship before each gate is decided by its interval.
        time_limit: seconds that it may take.
        near: search near the inputs for some that are decided otherwise.
        mend: try what a repair gives where the file is to blame; needs the extra `repair`.
        out: folder of the check, absent or empty; a new one in `runs/` for None.
        overwrite: replace the check in `out`.
        resume: go on with the check in `out`.
        trust: trust a Python function that the pair names as its original, and profiles in
            `./device_profiles`.
        trust_profiles: trust the profiles alone.
        progress: show how far it is, on standard error.

    Raises:
        UserError: an argument, a model, the inputs or a device's name is not what it should be, or
            needs the user's trust and does not have it.
        InfrastructureError: a device, a process or a disk failed; the folder says what is known,
            and `resume` goes on.

    """
    __tracebackhide__ = True
    began = time.monotonic()
    limit = if_given(whole_number, "limit", limit, 1)
    seconds = real_number("time_limit", time_limit, 1e-3)
    require_one_way(out, overwrite=overwrite, resume=resume)
    named = NamedModels.of(
        [path_of("models", model) for model in models], if_given(path_of, "inputs", inputs)
    )
    given = Settings(
        original=named.original,
        compressed=named.compressed,
        seeds=None if named.inputs is None else str(named.inputs),
    )
    loaded = named.load(given, granted(trust))
    loaded.require_known(mend=mend)
    profiles = find_profiles(device_names(device), granted(trust or trust_profiles))
    request = check_request(
        loaded.pair,
        profiles,
        read_limits(
            names_of("gates", gates),
            loaded.pair.gates,
            if_given(path_of, "gates_file", gates_file),
        ),
        limit=limit,
        time_limit_seconds=seconds,
        strict=strict,
        draws=named.draws,
        near=near,
        mend=mend,
    )
    path = if_given(path_of, "out", out) or new_folder(f"{loaded.pair.folder_name}-check")
    with errors_of_disks(), shown_progress(progress) as display:
        document, lost = check_into(
            path,
            loaded,
            profiles,
            request,
            ShownCheck(display),
            Interrupt(),
            began,
            overwrite=overwrite,
            resume=resume,
        )
    if lost is not None:
        raise lost
    return CheckResult(document, path)


@dataclass(frozen=True, slots=True)
class ShownCheck:
    """What shows how far a check is, and what it comes to so far."""

    display: ProgressDisplay

    def begun(self, name: str, about: float | None, most: float) -> None:
        """Show what a phase costs."""
        self.display.begun(name, about, most)

    def worked(self, name: str, done: int, total: int) -> None:
        """Show how far a phase is."""
        self.display.worked(name, done, total)

    def said(self, document: CheckDocument) -> None:
        """Say what the answers come to, before anything else is looked into."""
        cause = find_cause(document.figures, document.gates)
        found = "nothing speaks against it so far" if cause is None else cause.sentence
        self.display.told(f"by the answers alone: {found}")
