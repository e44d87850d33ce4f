"""All that a check measures, as its document has it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgeflare.check.figures.condition_cells import FieldFigures
from edgeflare.check.figures.data import DataFigures, OtherReading
from edgeflare.check.figures.device import DeviceFigures, SeenOperators
from edgeflare.check.figures.file import FileFault, FileFigures, SeenLayers
from edgeflare.check.figures.inference_cost import CostFigures
from edgeflare.check.figures.nearness import NearFigures
from edgeflare.check.figures.random_input_figures import DrawnFigures
from edgeflare.check.figures.repair_gain import MendFigures


class CheckFigures(msgspec.Struct, frozen=True, kw_only=True):
    """All that a check has measured so far.

    Attributes:
        data: what the inputs allow to say; null until that is known.
        devices: what each device did, in the order in which they were named.
        reading: a preprocessing with which the twin agrees with the original clearly more often;
            null where none was found.
        file: what the files say; null until they were read.
        layers: what the layers show; null until they were looked into, or where they cannot be.
        field: what the conditions of the field do; null until they were tried, or where they cannot
            be.
        near: how near inputs lie that are decided otherwise; null until that was searched for, or
            where it cannot be.
        costs: what an inference costs, on each device.
        operators: what the operators do by themselves, on each device where they were tried.
        drawn: what each device does on drawn inputs, where there are no others.
        mendable: whether the numbers in the file are to blame, and a repair takes the pair, as far
            as that shows without trying.
        mend: what a repair gives; null where none was tried, or it could not be.
        missing: reasons why parts could not be measured, by the name of the part.
        cut: the names of the parts that were cut off, or not begun, by the budget or the user.

    """

    data: DataFigures | None = None
    devices: tuple[DeviceFigures, ...] = ()
    reading: OtherReading | None = None
    file: FileFigures | None = None
    layers: SeenLayers | None = None
    field: FieldFigures | None = None
    near: NearFigures | None = None
    costs: tuple[CostFigures, ...] = ()
    operators: tuple[SeenOperators, ...] = ()
    drawn: tuple[DrawnFigures, ...] = ()
    mendable: bool = False
    mend: MendFigures | None = None
    missing: Mapping[str, str] = {}
    cut: tuple[str, ...] = ()

    def wrong_layers(self, device: str) -> tuple[str, ...]:
        """Return the layers that a device computes otherwise than the twin, each in words."""
        return () if self.layers is None else self.layers.on_device.get(device, ())

    @property
    def fewest_inputs(self) -> int:
        """Number of inputs that the device was asked about that was asked about the fewest."""
        return min((one.decisions.inputs for one in self.devices), default=0)

    @property
    def faults(self) -> tuple[FileFault, ...]:
        """The faults of the files and of their layers, whether they show or not."""
        return (
            *(self.file.faults if self.file else ()),
            *(self.layers.faults if self.layers else ()),
        )
