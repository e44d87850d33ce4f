"""A layer table in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.layers.layer_comparison import compare_layers, open_layers
from edgeflare.diagnose.layers.layers_document import (
    LAYER_TABLE,
    LAYERS,
    LayersDocument,
    layers_bytes,
)
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import Pair


def write_layer_table(
    path: Path,
    pair: Pair,
    limit: int,
    sensitivity_inputs: int,
    profile: Profile | None,
    progress: Callable[[int, int], None],
    interruptible: AbstractContextManager[Interrupt],
    *,
    overwrite: bool,
) -> tuple[LayersDocument | None, InfrastructureError | None]:
    """Look into the layers of a pair, and write what was seen into a folder.

    Args:
        path: the folder, absent or empty unless the table there is replaced.
        pair: the pair.
        limit: inputs that are looked into at most.
        sensitivity_inputs: those of them on which the sensitivity is measured.
        profile: profile of the device that is asked too; None without one.
        progress: is called with the number of inputs that are done, and that of all.
        interruptible: takes the user's wish to stop, from when models and device are open.
        overwrite: whether a table there is replaced.

    Returns:
        The document, None where nothing was seen before the user stopped it; and what was lost on
        the way, after which it is of the inputs until then; None where nothing was.

    Raises:
        UserError: the pair or the folder is not what it should be, or no layer can be seen.
        InfrastructureError: something was lost before anything was seen.

    """
    lost = None
    with ExitStack() as stack:
        claimed = stack.enter_context(LAYER_TABLE.claim(path, overwrite=overwrite))
        opened = open_layers(pair, limit, sensitivity_inputs, profile, stack)
        interrupt = stack.enter_context(interruptible)
        try:
            compare_layers(opened.comparison, opened.inputs, progress, interrupt.asked)
        except InfrastructureError as error:
            lost = error
        if not opened.comparison.inputs:
            if lost is not None:
                raise lost
            if interrupt.asked():
                return None, None
            raise UserError(f"no layer could be seen: {'; '.join(opened.comparison.notes.lines())}")
        document = opened.document(pair)
        with claimed.replaced() as made:
            (made / LAYERS).write_bytes(layers_bytes(document))
    return document, lost
