"""Make the picture of docs/search/gradients.md: seeds, and what `gradient` finds near them.

.venv/bin/python docs/pictures/gradient.py          (needs the extras `plots` and `whitebox`)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cv2
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
SEEDS = 3
WAYS = {"first found": "strongest=false", "strongest of 60 iterations": "strongest=true"}


def main() -> None:
    """Search the example in both ways, and draw what was found from three seeds."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            name: searched(Path(folder) / str(n), way) for n, (name, way) in enumerate(WAYS.items())
        }
        both = [found for _, found in runs.values()]
        shown = sorted(set(both[0]) & set(both[1]))[:SEEDS]
        figure = Figure(figsize=(6.6, 2.3 * SEEDS), layout="constrained")
        axes = figure.subplots(SEEDS, 1 + len(WAYS))
        for row, seed_id in zip(axes, shown, strict=True):
            path, found = runs["first found"]
            draw(row[0], path / found[seed_id]["seed_file"], f"seed {seed_id}")
            for place, (name, (path, found)) in zip(row[1:], runs.items(), strict=True):
                one = found[seed_id]
                l2, strength = one["distortion"]["l2"], one["strength"]
                said = f"{name}\nL2 {l2:.0f}, strength {strength:.3f}"
                draw(place, path / one["file"], said)
        figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


def searched(out: Path, setting: str) -> tuple[Path, dict[int, dict[str, Any]]]:
    """Search the example; return the run directory, and its findings by seed."""
    command = [
        *(sys.executable, "-m", "edgeflare", "search", str(ROOT / "examples/fashion_lenet4")),
        *("--device", "emulated-xnnpack", "--strategy", "gradient", "--set", setting),
        *("--first", "10", "--shrink", "0", "--fail-on", "none", "--quiet", "--out", str(out)),
    ]
    subprocess.run(command, check=True)
    document = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return out, {one["seed_id"]: one for one in document["findings"]}


def draw(axes: Any, image: Path, title: str) -> None:
    """Draw an image with a title."""
    axes.imshow(cv2.imread(str(image), cv2.IMREAD_GRAYSCALE), cmap="gray", vmin=0, vmax=255)
    axes.set_title(title, fontsize=8)
    axes.set_axis_off()


if __name__ == "__main__":
    main()
