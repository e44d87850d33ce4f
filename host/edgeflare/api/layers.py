"""A layer table from Python: `edgeflare.layers`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike

from edgeflare.api.call_arguments import (
    errors_of_disks,
    if_given,
    name_of,
    naming_arguments,
    path_of,
    shown_progress,
    whole_number,
)
from edgeflare.api.result import Result
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.layers.layer_table import write_layer_table
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.diagnose.layers.layers_page import layers_csv, layers_page
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.pages.page import Page
from edgeflare.record.folder import new_folder
from edgeflare.trust import granted


@dataclass(frozen=True, repr=False)
class LayersResult(Result[LayersDocument]):
    """A layer table; its rows are the layers.

    Attributes:
        document: what layers.json holds.
        path: folder of the table.

    """

    def page(self) -> Page:
        """Return what `edgeflare layers` says."""
        return layers_page(self.document)

    def csv(self) -> str:
        """Return the layers as comma-separated values with a header (RFC 4180)."""
        return layers_csv(self.document)


@naming_arguments
def layers(  # noqa: PLR0913 - the options of the command
    pair: str | PathLike[str],
    *,
    inputs: str | PathLike[str] | None = None,
    device: str | None = None,
    limit: int = 100,
    sensitivity_inputs: int = 50,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    trust: bool = False,
    trust_profiles: bool = False,
    progress: bool = True,
) -> LayersResult:
    """Say how far each layer of a compressed model is off; see `edgeflare layers`.

    Args:
        pair: a folder with a `pair.toml`.
        inputs: an `.npz` or a folder, given as seeds are; the pair's seeds for None.
        device: hold each layer on this device against the same file on the host, too; None for no
            device.
        limit: look into so many of the inputs, of each label its share.
        sensitivity_inputs: measure the sensitivity on so many of them; 0 for none.
        out: folder of the table, absent or empty; a new one in `runs/` for None.
        overwrite: replace the table in `out`.
        trust: trust a Python function that the pair names as its original, and profiles in
            `./device_profiles`.
        trust_profiles: trust the profiles alone.
        progress: show how far it is, on standard error.

    Raises:
        UserError: an argument, the pair or the device's name is not what it should be, or no layer
            can be seen.
        InfrastructureError: a device, a process or a disk failed; where something was seen before,
            the folder has the table of it.

    """
    __tracebackhide__ = True
    limit = whole_number("limit", limit, 1)
    sensitivity_inputs = whole_number("sensitivity_inputs", sensitivity_inputs, 0)
    given = Settings(seeds=None if inputs is None else str(path_of("inputs", inputs)))
    loaded = load_pair(path_of("pair", pair), given, granted(trust), seeds_option="")
    decided = granted(trust or trust_profiles)
    profile = None if device is None else find_profile(name_of("device", device), decided)
    path = if_given(path_of, "out", out) or new_folder(f"{loaded.folder_name}-layers")
    with errors_of_disks(), shown_progress(progress) as display:
        document, lost = write_layer_table(
            path,
            loaded,
            limit,
            sensitivity_inputs,
            profile,
            lambda at, of: display.worked("layers", at, of),
            nullcontext(Interrupt()),
            overwrite=overwrite,
        )
    if lost is not None:
        raise lost
    assert document is not None  # noqa: S101 - nobody stops it
    return LayersResult(document, path)
