"""Checks that the models of a pair fit each other and what is looked for."""

from __future__ import annotations

from edgeflare.core.goal import Find
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.pair import Pair
from edgeflare.tasks.classification import class_count


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


def require_class_names(pair: Pair, twin: Evaluator) -> None:
    """Refuse class names that are not one for each class of the compressed model.

    Raises:
        UserError: there are more or fewer names than classes.

    """
    classes = class_count(twin.signature.output)
    if pair.classes and len(pair.classes) != classes:
        raise UserError(
            f"{pair.name}: classes has {len(pair.classes)} names, but {pair.compressed} tells "
            f"{classes} classes apart: give one name for each, in the order of its outputs"
        )


def require_same_classes(pair: Pair, original: Evaluator, twin: Evaluator) -> None:
    """Refuse two models that tell different numbers of classes apart.

    Raises:
        UserError: the numbers differ.

    """
    f, h = original.signature.output.shape, twin.signature.output.shape
    if f[-1] != h[-1]:
        raise UserError(
            f"{pair.name}: the original tells {f[-1]} classes apart and the compressed model "
            f"{h[-1]}: they are no pair"
        )
