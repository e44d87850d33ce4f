"""A layer table, as `edgeflare report` shows and writes it."""

from __future__ import annotations

from edgeflare.cli.presentation import Reported, page_bytes
from edgeflare.diagnose.layers.layers_document import LAYERS, load_layers
from edgeflare.diagnose.layers.layers_page import layers_csv, layers_page
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import RunDirectory


def reported_layers(directory: RunDirectory) -> Reported:
    """Read a layer table."""
    document = load_layers(directory.inside(LAYERS))
    page = layers_page(document)
    return Reported(
        lambda: plain_json(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("layers.html", lambda: page_bytes(page)),
            "--csv": ("layers.csv", lambda: layers_csv(document).encode()),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
        },
        "a layer table",
    )
