"""What can be repaired: classifiers of images with one input."""

from __future__ import annotations

from edgeflare.errors import UserError
from edgeflare.models.pair_input import DEFAULT_DOMAIN
from edgeflare.models.pair_interface import DEFAULT_TASK, PairInterface


def require_image_classifier(interface: PairInterface, name: str) -> None:
    """Refuse models of another kind.

    Args:
        interface: what the models take and give.
        name: what the user calls their pair or run.

    Raises:
        UserError: their inputs are no images or several, or the task is another one.

    """
    several = len(interface.inputs) > 1
    domain = interface.domain_name
    if interface.task == DEFAULT_TASK and domain == DEFAULT_DOMAIN and not several:
        return
    given = "several inputs" if several else f"the domain {domain}"
    raise UserError(
        f"repair is for classifiers of images with one input, and {name} is of {given} and the"
        f" task {interface.task}: convert or train the compressed model anew"
    )
