"""A package of a user's own: one module and its entry points, installed as pip leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install_plugin(
    folder: Path, module: str, source: str, entry_points: Mapping[str, Mapping[str, str]]
) -> Path:
    """Write what pip would install of a package of one module; pip itself takes seconds for it.

    Args:
        folder: to install the package in.
        module: name of the module; the package has the same with hyphens.
        source: the module's code.
        entry_points: what each name of a group of entry points stands for, by group.

    Returns:
        What has to be on `PYTHONPATH` for the package to be installed.

    """
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source)
    name = module.replace("_", "-")
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder
