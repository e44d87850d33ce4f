"""`--model-explorer`: the overlays of findings in the run directory, and how to look at them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from rich.console import Console

from edgeflare.diagnose.explain_document import ExplainedFinding
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import fold_shapes
from edgeflare.models.tflite_graph import Graph
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import remove_documents
from edgeflare.report.model_explorer_overlay import OVERLAY_FILES, model_explorer_overlay
from edgeflare.run.run_directory import RunDirectory

_FOLDER = "explain/{:06d}.model-explorer"


class OverlayFiles:
    """The overlays that one call writes."""

    def __init__(
        self, directory: RunDirectory, pair: Pair, seed_ids: Iterable[int], *, wanted: bool
    ) -> None:
        """Begin, before anything is asked.

        Args:
            directory: the run directory.
            pair: pair whose compressed model is the graph.
            seed_ids: those of the findings that are to be explained.
            wanted: whether each of them is to have an overlay. Else only those have that had one
                before, so that no overlay shows what an earlier explanation found.

        Raises:
            UserError: the place of an overlay is taken, or leads out of the run directory.

        """
        self._directory = directory
        self._pair = pair
        self._wanted = wanted
        self._written: list[int] = []
        self._without: dict[int, str] = {}
        for seed_id in seed_ids:
            self._files(seed_id)

    def write(self, finding: ExplainedFinding) -> None:
        """Write the overlay of a finding, in the place of an earlier one."""
        seed_id = finding.seed_id
        if not (self._wanted or self._folder(seed_id).exists()):
            return
        contents = model_explorer_overlay(finding, *self._graphs)
        for name, path in self._files(seed_id).items():
            if name in contents:
                write_atomically(path, contents[name])
            else:
                remove_documents(self._directory.path, f"{_FOLDER.format(seed_id)}/{name}")
        if contents:
            self._written.append(seed_id)
        else:
            self._without[seed_id] = (
                finding.device_and_twin.note or "none of its layers was observed"
            )

    def show(self, console: Console) -> None:
        """Say which findings have no overlay, and what to type to look at the first that has."""
        for why in dict.fromkeys(self._without.values()):
            seeds = [seed_id for seed_id, note in self._without.items() if note == why]
            said = f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"
            _print(console, f"Model Explorer has nothing to show of {said}: {why}.")
        if not self._written:
            return
        first = min(self._written)
        folder = self._folder(first)
        _print(
            console,
            f"`model-explorer {shlex.quote(str(self._pair.compressed))} --node_data_paths="
            f'"$(ls -m {shlex.quote(str(folder))}/*)"` shows seed {first} on the graph.',
        )
        if others := len(self._written) - 1:
            _print(
                console, f"{others} more have their files in {self._directory.path / 'explain'}."
            )

    def _folder(self, seed_id: int) -> Path:
        return self._directory.path / _FOLDER.format(seed_id)

    def _files(self, seed_id: int) -> dict[str, Path]:
        """Return the paths of all files that the overlay of a finding may have, by their names."""
        folder = self._folder(seed_id)
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file, where an overlay would be: move it away")
        names = ((name, f"{_FOLDER.format(seed_id)}/{name}") for name in OVERLAY_FILES)
        return {name: self._directory.inside(within) for name, within in names}

    @cached_property
    def _graphs(self) -> tuple[Graph, Graph | None]:
        """The graph of the user's file, and the one with folded shapes where that was run."""
        pair = self._pair
        source, content = str(pair.compressed), read_model_file(pair.compressed)
        if not pair.fold_shapes:
            return Graph(content, source), None
        folded = fold_shapes(content, source, pair.interface.invocation).content
        return Graph(content, source), Graph(folded, source)


def _print(console: Console, line: str) -> None:
    console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
