"""Checks that the models of a pair fit each other and what is looked for."""

from __future__ import annotations

from collections.abc import Mapping

from edgeflare.campaign.panel import ArmModel
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find
from edgeflare.core.task import Decoder
from edgeflare.errors import UserError
from edgeflare.models.model_variables import pair_variables
from edgeflare.models.pair import Pair


def require_original(pair: Pair, find: Find) -> None:
    """Refuse a pair without an original, unless kernels alone are compared.

    Raises:
        UserError: there is no original, and it is needed.

    """
    if pair.original is None and find is not Find.KERNEL:
        raise UserError(
            f"{pair.name} has no original model: name one with --original, or compare the kernels "
            "alone with --find kernel"
        )


def require_state(pair: Pair) -> None:
    """Refuse frames of models that keep nothing from one frame to the next.

    Raises:
        UserError: there are frames, and neither a state nor variables.

    """
    called = pair.interface.invocation
    if called.frames and not called.state and not pair_variables(pair):
        raise UserError(
            f"{pair.name}: frames is {called.frames}, but the models keep nothing from one frame to"
            " the next: say under [state] which output feeds which input, or remove frames"
        )


def require_comparable(pair: Pair, hosts: Mapping[Arm, ArmModel]) -> None:
    """Refuse models whose decisions cannot be compared, or class names that do not fit them.

    Raises:
        UserError: see `Task.require_pair`.

    """
    original = hosts.get(Arm.ORIGINAL)
    try:
        pair.interface.opened_task.require_pair(
            None if original is None else original.decoder, hosts[Arm.TWIN].decoder, pair.classes
        )
    except UserError as error:
        raise UserError(f"{pair.name}: {error}") from None


def require_fitting_device(pair: Pair, twin: Decoder, device: Decoder) -> None:
    """Refuse stages of the device whose answers cannot be compared with those of the other arms.

    Raises:
        UserError: they tell another number of decisions apart.

    """
    if twin.choices != device.choices:
        raise UserError(
            f"{pair.name}: as [device.task] reads the outputs there are {device.choices} classes,"
            f" and {twin.choices} as [task] does: both have to tell the same ones apart"
        )
    try:
        pair.interface.opened_task.require_pair(twin, device, ())
    except UserError as error:
        raise UserError(
            f"{pair.name}: as [device.task] reads the outputs they cannot be compared with what"
            f" [task] makes of them, which stands for the original here: {error}"
        ) from None
