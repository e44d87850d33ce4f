"""`edgeflare layers`: how far each layer of a compressed model is off, over many inputs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli import pair_options, run_options
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, as_ctrl_c, interruptible_once
from edgeflare.cli.option_values import complete_device
from edgeflare.cli.quiet import Quiet, result
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.diagnose.layers.layer_comparison import open_layers
from edgeflare.diagnose.layers.layer_table import write_layer_table
from edgeflare.diagnose.layers.layers_document import LAYER_TABLE
from edgeflare.diagnose.layers.layers_page import layers_page
from edgeflare.models.pair import Pair, load_pair
from edgeflare.pages.facts import count_of
from edgeflare.pages.terminal import print_page
from edgeflare.progress import observe
from edgeflare.record.folder import new_folder
from edgeflare.trust import decided_by_user

Inputs = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="The inputs: an .npz or a folder, as seeds are given. By default the pair's seeds.",
    ),
]
Limit = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Look into N of the inputs: of each label its share, the first of it; without labels "
        "evenly through all.",
    ),
]
SensitivityInputs = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Measure the sensitivity on N of them, of each label its share; 0 leaves it out, and "
        "the layers are sorted by their own share of the error.",
    ),
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="Hold each layer on this device against the same file on the host too, and name those"
        " that it computes otherwise.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of the layer table, absent or empty. By default a new folder in runs/.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the layer table in --out.")]


@run_options.with_option_groups
def layers(
    pair: pair_options.PairOrInputs = None,
    original: pair_options.Original = None,
    compressed: pair_options.Compressed = None,
    *,
    preprocessing: pair_options.Preprocessing,
    inputs: Inputs = None,
    limit: Limit = 100,
    sensitivity_inputs: SensitivityInputs = 50,
    device: DeviceName = None,
    out: Out = None,
    overwrite: Overwrite = False,
    dry_run: run_options.DryRun = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Say how far each layer of a compressed model is off, and which of them matter.

    Each layer is looked into on all inputs: entire, with the errors of the layers before, and
    single, by itself and given the same as the original's. Layers are sorted by their sensitivity:
    by how much the margin of the original's decision changes where that layer alone is compressed.

        edgeflare layers PAIR
        edgeflare layers PAIR --inputs test.npz --device pixel --out runs/layers

    DIR/layers.json holds the table; `edgeflare report DIR --html --csv` makes a page with charts
    along the network, and rows for spreadsheets.

    Exit codes: 0 done; 2 the command has to be corrected; 3 a device, a process or a disk failed;
    130 Ctrl-C. What is found does not change the code. After 3 and 130 the table is that of the
    inputs until then, spread over all labels.
    """
    decided = decided_by_user(trust)
    given = preprocessing.settings(original, None if inputs is None else str(inputs), compressed)
    loaded = load_pair(pair, given, decided, "--inputs")
    path = out or new_folder(f"{loaded.folder_name}-layers")
    profile = None if device is None else find_profiles([device], decided)[0]
    console = Console(stderr=True)
    if dry_run:
        _look(loaded, limit, sensitivity_inputs, profile, path, overwrite=overwrite)
        return 0
    interrupt = Interrupt()
    with as_ctrl_c(), observe(console) as observer:
        document, lost = write_layer_table(
            path,
            loaded,
            limit,
            sensitivity_inputs,
            profile,
            lambda at, of: observer.worked("layers", at, of),
            interruptible_once("writing what was seen", interrupt),
            overwrite=overwrite,
        )
    if document is None:
        return INTERRUPTED
    print_page(Console(), layers_page(document), str(path))
    result(path)
    if lost is not None:
        raise lost
    return INTERRUPTED if interrupt.asked() else 0


def _look(
    pair: Pair,
    limit: int,
    sensitivity_inputs: int,
    profile: Profile | None,
    path: Path,
    *,
    overwrite: bool,
) -> None:
    """Print what would be looked into."""
    LAYER_TABLE.check(path, overwrite=overwrite)
    with ExitStack() as stack:
        opened = open_layers(pair, limit, sensitivity_inputs, profile, stack)
        figures = list(opened.comparison.figures())
    matched = sum(figure.matched_by is not None for figure in figures)
    measured = sum(input_.sensitivity for input_ in opened.inputs)
    against = "" if opened.device is None else f", and on {opened.device.name} against the twin"
    for line in (
        f"{count_of(len(figures), 'layer')}, {matched} of them with one of the original{against}",
        f"{count_of(len(opened.inputs), 'input')} of {Path(pair.seeds).name}; the sensitivity on"
        f" {measured} of them",
        *opened.comparison.notes.lines(),
        f"would write {path}; nothing was written",
    ):
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
