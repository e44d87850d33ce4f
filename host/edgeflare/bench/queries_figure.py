"""The figure of a bench: cumulative success against queries, a panel for each pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgeflare.bench.bench_document import Bench
from edgeflare.bench.strategy_figures import queries_needed
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.report.nearness_figure import label_lines
from edgeflare.statistics.bootstrap import Values


def draw_queries(bench: Bench, path: Path) -> None:
    """Draw the figure as an SVG; the same runs give the same file.

    Raises:
        UserError: matplotlib is not installed.

    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415

        from edgeflare.pages.chart import drawn_svg  # noqa: PLC0415
    except ImportError:
        raise UserError(f"{path.name} needs matplotlib: pip install 'edgeflare[plots]'") from None
    pairs = bench.by_pair()
    most = bench.grid.plan.max_queries
    style = {"svg.hashsalt": "edgeflare", "svg.fonttype": "none", "text.parse_math": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(5.0 * max(1, len(pairs)), 3.6), layout="constrained")
        panels = figure.subplots(1, max(1, len(pairs)), squeeze=False, sharey=True)[0]
        for panel, (pair, runs) in zip(panels, pairs.items(), strict=False):
            for documents in runs.values():
                if documents:
                    spent, rates = cumulative_success(queries_needed(documents))
                    # From one query on, since the axis is logarithmic, to the bound.
                    last = rates[-1] if rates.size else 0.0
                    x, y = [1.0, *spent, float(most)], [0.0, *rates, last]
                    panel.step(x, y, where="post")
            panel.set(title=pair, xlabel="queries", xscale="log", xlim=(1, most), ylim=(0, 1.02))
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("share of the seeds with a finding")
        first = next(iter(pairs.values()), {})
        drawn_first = [strategy for strategy, documents in first.items() if documents]
        label_lines(panels[0], drawn_first, "upper left")
        drawn = drawn_svg(figure, {"Date": None})
    write_atomically(path, drawn.encode())


def cumulative_success(values: Values) -> tuple[Values, Values]:
    """Return the success rate against what was spent: (found,) of each, both rising."""
    spent = np.sort(values[np.isfinite(values)])
    return spent, np.arange(1, spent.size + 1) / max(1, values.size)
