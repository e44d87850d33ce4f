"""Command-line options that describe a pair, and override its `pair.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.further_options import PREPARATION
from edgeflare.cli.option_values import read_numbers
from edgeflare.domains.image.preprocess import PRESETS
from edgeflare.models.pair_file import Settings

_PAIR = "The pair (these override pair.toml)"

PairFolder = Annotated[
    Path | None,
    typer.Argument(
        metavar="PAIR",
        help="A folder that holds a pair.toml; or give --compressed, --seeds and --original.",
    ),
]
PairOrInputs = Annotated[
    Path | None,
    typer.Argument(
        metavar="PAIR",
        help="A folder that holds a pair.toml; or give --compressed, --inputs and --original.",
    ),
]
Original = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="The original model: a .tflite, an .onnx, or module:function.",
        rich_help_panel=_PAIR,
    ),
]
Compressed = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="The compressed .tflite.", rich_help_panel=_PAIR),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="An .npz with inputs (of images uint8, NHWC) and maybe labels, or a folder of files, "
        "such as images or sounds.",
        rich_help_panel=_PAIR,
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Further inputs, given as seeds are, that are only evaluated: how many deviate as "
        "they are.",
        rich_help_panel=_PAIR,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Preprocessing by name: {', '.join(PRESETS)}.",
        rich_help_panel=PREPARATION,
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(help="Model input = (pixel / SCALE - MEAN) / STD.", rich_help_panel=PREPARATION),
]
Mean = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS",
        help="One number, or one for each channel: 0.49,0.48,0.45.",
        rich_help_panel=PREPARATION,
    ),
]
Std = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS", help="One number, or one for each channel.", rich_help_panel=PREPARATION
    ),
]
Resize = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="Seeds of another size: none (refuse them), stretch or center-crop.",
        rich_help_panel=PREPARATION,
    ),
]
Channels = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER", help="The models' channel order, rgb or bgr.", rich_help_panel=PREPARATION
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        help="NHWC or NCHW, for models whose input may have its channels last or first.",
        rich_help_panel=PREPARATION,
    ),
]
Rounding = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="How quantized inputs are rounded: half-away, half-even or truncate.",
        rich_help_panel=PREPARATION,
    ),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="What the models give: auto (look and see), logits or probabilities.",
        rich_help_panel=PREPARATION,
    ),
]
FoldShapes = Annotated[
    bool | None,
    typer.Option(
        "--fold-shapes/--no-fold-shapes",
        help="Fold what the compressed model computes from fixed shapes alone into constants, as "
        "accelerators need it: a flatten of SHAPE, STRIDED_SLICE, PACK and RESHAPE. Twin and "
        "device run that file, which has to give outputs equal to those of yours on the host.",
        rich_help_panel=PREPARATION,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Take N of the seeds: of each label its share, the first of it; without labels evenly "
        "through the set. A larger N takes these too.",
        rich_help_panel=_PAIR,
    ),
]
First = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Take the first N of the seeds, whatever their labels.",
        rich_help_panel=_PAIR,
    ),
]


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What stands around the models, and how these are prepared: options of commands on pairs."""

    preset: Preset = None
    scale: Scale = None
    mean: Mean = None
    std: Std = None
    resize: Resize = None
    channels: Channels = None
    layout: Layout = None
    rounding: Rounding = None
    outputs: Outputs = None
    fold_shapes: FoldShapes = None

    def settings(
        self, original: str | None, seeds: str | None, compressed: str | None = None
    ) -> Settings:
        """Return what the command line says about a pair."""
        return Settings(
            original=original,
            compressed=compressed,
            seeds=seeds,
            preset=self.preset,
            scale=self.scale,
            mean=read_numbers("--mean", self.mean),
            std=read_numbers("--std", self.std),
            resize=self.resize,
            channels=self.channels,
            layout=self.layout,
            rounding=self.rounding,
            outputs=self.outputs,
            fold_shapes=self.fold_shapes,
        )
