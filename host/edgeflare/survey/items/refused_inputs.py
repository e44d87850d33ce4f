"""What is wrong with the inputs of a survey, in the words of its option.

Inputs are loaded as seeds are, by code that speaks of seeds; who surveys has given none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from edgeflare.errors import UserError

_STARTS = (
    ("there are no seeds at ", "--inputs: there are no inputs at "),
    ("seeds: ", "--inputs: "),
    ("seeds ", "--inputs "),
)
_PHRASES = (
    (" each seed", " each input"),
    (" of seeds,", " of inputs,"),
    (": seed ", ": input "),
    ("give seeds of ", "give inputs of "),
)


@contextmanager
def speaking_of_inputs(*, own_inputs: bool) -> Iterator[None]:
    """Have what refuses seeds within it speak of `--inputs`, unless they are the pair's seeds.

    Raises:
        UserError: what is within it raised one.

    """
    try:
        yield
    except UserError as error:
        if not own_inputs:
            raise
        raise UserError(_of_inputs(str(error))) from error


def _of_inputs(complaint: str) -> str:
    for of_seeds, of_inputs in _PHRASES:
        complaint = complaint.replace(of_seeds, of_inputs)
    for start, instead in _STARTS:
        if complaint.startswith(start):
            return instead + complaint.removeprefix(start)
    return f"--inputs: {complaint}"
