"""The file of many graphs side by side, written once for all arms that want it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.graphs.operator_graph import OperatorGraph, side_by_side

_KEPT = 16
"""Files. Four arms ask for the same ones at about the same time."""

_files: OrderedDict[tuple[int, ...], tuple[Sequence[OperatorGraph], bytes]] = OrderedDict()
_lock = Lock()


def pack_file(graphs: Sequence[OperatorGraph]) -> bytes:
    """Return the file of graphs side by side; to write one takes longer than to run it.

    Args:
        graphs: the same objects are taken for the same graphs.

    """
    key = tuple(map(id, graphs))
    # Who waits here waits for the file that it wants, or for the interpreter's lock.
    with _lock:
        if key in _files:
            return _files[key][1]
        content = graph_file(side_by_side(graphs))
        # The graphs are kept, too, so that no others get their identities.
        _files[key] = tuple(graphs), content
        if len(_files) > _KEPT:
            _files.popitem(last=False)
        return content
