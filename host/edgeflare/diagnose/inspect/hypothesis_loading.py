"""The hypotheses of a user: a Python file or module that is imported, and what they may be."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.diagnose.inspect.built_in_hypotheses import BUILT_IN_NAMES
from edgeflare.errors import UserError
from edgeflare.hypothesis import UnitHypothesis
from edgeflare.python_callable import load_module


def load_hypotheses(sources: Sequence[str]) -> tuple[UnitHypothesis, ...]:
    """Import files or modules, and return their hypotheses in the order in which they stand there.

    Whether the user trusts them has to be asked before.

    Args:
        sources: `path/to/file.py`, or a module that is importable, from the working directory too.

    Raises:
        UserError: one cannot be imported or has no hypothesis, or a name is that of another one.

    """
    found: dict[str, UnitHypothesis] = {}
    for source in sources:
        # A function may have several names there, and still is one.
        values = [
            one for one in vars(load_module(source)).values() if isinstance(one, UnitHypothesis)
        ]
        here = list({id(one): one for one in values}.values())
        if not here:
            raise UserError(
                f"{source} has no hypothesis: decorate a function of one input with"
                ' @hypothesis("name"), from edgeflare.hypothesis'
            )
        for one in here:
            if not isinstance(one.name, str) or not one.name.strip():
                raise UserError(f"{source}: a hypothesis is named {one.name!r}: give it a text")
            if one.name in BUILT_IN_NAMES:
                raise UserError(
                    f"{source}: {one.name!r} is the name of a built-in hypothesis: choose another"
                )
            if one.name in found and found[one.name] is not one:
                raise UserError(f"{source}: two hypotheses are named {one.name!r}: rename one")
            found[one.name] = one
    return tuple(found.values())
