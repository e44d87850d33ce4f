"""A package of a user's own: one module and its entry points, installed as pip installs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PYPROJECT = """
[project]
name = "{name}"
version = "1.0"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""


def install_plugin(
    folder: Path, module: str, source: str, entry_points: Mapping[str, Mapping[str, str]]
) -> Path:
    """Install a package of one module into a folder of its own.

    Args:
        folder: an empty folder, for the package's source and for what is installed.
        module: name of the module; the package has the same with hyphens.
        source: the module's code.
        entry_points: what each name of a group of entry points stands for, by group.

    Returns:
        What has to be on `PYTHONPATH` for the package to be installed.

    """
    project, installed = folder / "project", folder / "installed"
    project.mkdir()
    (project / f"{module}.py").write_text(source)
    tables = (
        "\n".join([f'\n[project.entry-points."{group}"]', *(f'{n} = "{v}"' for n, v in of.items())])
        for group, of in entry_points.items()
    )
    name = module.replace("_", "-")
    (project / "pyproject.toml").write_text(PYPROJECT.format(name=name) + "\n".join(tables) + "\n")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-index", "--no-deps", "--no-build-isolation", "--target", installed, project),
        ],
        check=True,
        timeout=100,
    )
    return installed
