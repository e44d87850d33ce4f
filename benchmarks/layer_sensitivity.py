"""How well few inputs tell the sensitivity of layers, and what else tells it.

Runs `edgeflare layers` on many inputs and on few of the pair's own, and prints Spearman's rank
correlation over the layers: of the two sensitivities, and of the large one with other columns.

.venv/bin/python benchmarks/layer_sensitivity.py PAIR INPUTS.npz
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from scipy.stats import spearmanr

from edgeflare.diagnose.layers.layer_figures import LayerFigures
from edgeflare.diagnose.layers.layers_document import LayersDocument, load_layers, own_share

_COLUMNS: Mapping[str, Callable[[LayerFigures], float | None]] = {
    "own": own_share,
    "noise of single": lambda one: None if one.single is None else _less(one.single.snr_db),
    "noise of entire": lambda one: None if one.entire is None else _less(one.entire.snr_db),
    "1 - cosine of entire": lambda one: None if one.entire is None else _less(one.entire.cosine),
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("pair", type=Path)
    asked.add_argument("inputs", type=Path, help="an .npz of many inputs")
    asked.add_argument("--many", type=int, default=4000)
    asked.add_argument("--few", type=int, default=50)
    given = asked.parse_args()
    with TemporaryDirectory() as folder:
        many = _layers(given.pair, given.many, Path(folder) / "many", "--inputs", given.inputs)
        few = _layers(given.pair, given.few, Path(folder) / "few")
    large, small = _sensitivities(many), _sensitivities(few)
    print(
        f"{given.few} inputs beside {given.many}: {_rho(large, small):.2f} of {len(large)} layers"
    )
    for name, of in _COLUMNS.items():
        column = {one.layer.operator_index: of(one) for one in many.layers}
        known = {at: value for at, value in column.items() if value is not None}
        print(f"{name}: {_rho(large, known):.2f}")


def _layers(pair: Path, count: int, out: Path, *more: str | Path) -> LayersDocument:
    command = [sys.executable, "-m", "edgeflare", "layers", str(pair), *map(str, more)]
    numbers = ["--limit", str(count), "--sensitivity-inputs", str(count)]
    subprocess.run([*command, *numbers, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    return load_layers(out / "layers.json")


def _sensitivities(document: LayersDocument) -> dict[int, float]:
    return {
        one.layer.operator_index: one.sensitivity.margin
        for one in document.layers
        if one.sensitivity is not None
    }


def _less(figure: float | None) -> float | None:
    return None if figure is None else -figure


def _rho(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    both = sorted(one.keys() & other.keys())
    return float(spearmanr([one[at] for at in both], [other[at] for at in both])[0])


if __name__ == "__main__":
    main()
