"""How near to the inputs of a check lie some that are decided otherwise."""

from __future__ import annotations

from typing import Final

import msgspec

from edgeflare.record.json_types import Amount, Count, Share


class NearFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How near inputs lie that are decided otherwise, beside a reference compression.

    Attributes:
        measure: measure of nearness, such as PSNR.
        model: what was found of the compressed model.
        reference: what was found of the original as the maintained quantizer makes it int8.

    """

    measure: str
    model: SearchedModel
    reference: SearchedModel

    @property
    def as_near(self) -> bool:
        """Whether they lie about as far as those of the reference, or farther."""
        return self.model.area <= self.reference.area + NEARER


NEARER: Final = 0.05
"""Difference of areas from which on inputs are nearer than those of the reference: 2.5 dB of 50."""


class SearchedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a search from a few inputs found of a compressed model.

    Attributes:
        run: the run directory within the folder of the check.
        seeds: how many inputs were searched from.
        found: seeds from which an input was found that is decided otherwise, or that are so
            themselves.
        nearness_db: how near the found ones lie, the median; null where none was found.
        area: area under the curve of shares against nearness, from 0 to 1; less is better.
        harmed: found ones that the original alone decides as is right.

    """

    run: str
    seeds: Count
    found: Count
    nearness_db: Amount | None
    area: Share
    harmed: Count
