"""The candidates of a ranking: compressed models that share original, seeds and preprocessing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.shape_folding import asks_for_shapes
from edgeflare.trust import KEPT_ONLY, Trust


def gather(
    folders: Sequence[Path], compressed: Sequence[str], given: Settings, trust: Trust = KEPT_ONLY
) -> list[Pair]:
    """Load the candidates: those of the pair folders, then the further compressed models.

    A further model takes all else from the first folder, or from the flags where there is none.
    Shapes are folded in those that compute something from them; the others have a note of it.

    Args:
        folders: pair folders.
        compressed: paths of further compressed models.
        given: what the flags say about every pair.
        trust: the user's decision on Python callables that a `pair.toml` names.

    Raises:
        UserError: a pair cannot be loaded, or they cannot be ranked against each other.

    """
    if not folders and not compressed:
        raise UserError(
            "nothing to rank: name pair folders, or --original, --seeds and a --compressed for "
            "each model"
        )
    pairs = [load_pair(folder, given, trust) for folder in folders]
    base = folders[0] if folders else None
    for path, name in zip(compressed, _names(compressed), strict=True):
        pairs.append(load_pair(base, replace(given, compressed=path, name=name), trust))
    _check(pairs)
    return _folding_what_is_there(pairs)


def _folding_what_is_there(pairs: list[Pair]) -> list[Pair]:
    """Return the pairs, of which none folds shapes without having some.

    Where no file has any, all stay as they are: the first that is opened is refused with the
    reason.
    """
    foldable = [pair.fold_shapes and asks_for_shapes(pair.compressed) for pair in pairs]
    if not any(foldable):
        return pairs
    return [
        pair if folds or not pair.fold_shapes else _unfolded(pair)
        for pair, folds in zip(pairs, foldable, strict=True)
    ]


def _unfolded(pair: Pair) -> Pair:
    note = (
        f"{pair.compressed} computes nothing from the shapes of its tensors, so it runs as it is,"
        " without folding"
    )
    return replace(pair, fold_shapes=False, notes=(*pair.notes, note))


def _names(compressed: Sequence[str]) -> list[str]:
    """Return the files' names; their folders' too where two are alike, or a name says nothing.

    A model in a pair folder is mostly called "compressed".
    """
    paths = [Path(path).absolute() for path in compressed]
    times = Counter(path.stem for path in paths)
    names = [
        path.stem if times[path.stem] == 1 else f"{path.parent.name}-{path.stem}" for path in paths
    ]
    return [
        path.parent.name if path.stem == "compressed" else name
        for path, name in zip(paths, names, strict=True)
    ]


def _check(pairs: Sequence[Pair]) -> None:
    if len(pairs) == 1:
        raise UserError(
            f"{pairs[0].name} alone cannot be ranked: name a second pair folder, or another "
            "compressed model with --compressed"
        )
    first = pairs[0]
    for pair in pairs:
        if pair.original is None:
            raise UserError(
                f"{pair.name} has no original model, and a rank is by how the compressed models "
                "differ from it: name it with --original"
            )
    for pair in pairs[1:]:
        _check_same_question(first, pair)
    _check_files(pairs)
    for name, times in Counter(pair.folder_name for pair in pairs).items():
        if times > 1:
            raise UserError(
                f"{times} of the models are called {name}: give their pairs different names in "
                "pair.toml, or rename the files"
            )


def _check_same_question(first: Pair, pair: Pair) -> None:
    """Refuse pairs that differ in more than their compressed models.

    The parts are replaced one by one by those of the other; the fingerprint shows which differs.
    """
    names = f"{first.name} and {pair.name}"
    if pair.model_hashes().original != first.model_hashes().original:
        raise UserError(
            f"{names} have different originals, {first.original} and {pair.original}: rank "
            "compressed models of one original"
        )
    if pair.classes and first.classes and pair.classes != first.classes:
        raise UserError(
            f"{names} have different classes, {_some(first.classes)} and {_some(pair.classes)}: "
            "rank compressed models of one original, with the same classes in each pair.toml"
        )
    alike = replace(pair, compressed=first.compressed)
    if pair.interface != first.interface:
        raise UserError(
            f"{names} are preprocessed differently, or have different inputs or tasks: say"
            " --preset, or --scale, --mean, --std and --outputs, for all of them, or write the same"
            " into each pair.toml"
        )
    if replace(alike, original=first.original).fingerprint() != first.fingerprint():
        raise UserError(
            f"{names} have different seeds, {first.seeds} and {pair.seeds}: name one set for all "
            "of them with --seeds"
        )
    if alike.fingerprint() != first.fingerprint():
        raise UserError(
            f"{names} have different originals, {first.original} and {pair.original}: rank "
            "compressed models of one original"
        )


def _check_files(pairs: Sequence[Pair]) -> None:
    seen: dict[str | None, Pair] = {}
    for pair in pairs:
        sha256 = pair.model_hashes().compressed
        if sha256 in seen:
            raise UserError(
                f"{seen[sha256].compressed} and {pair.compressed} are the same model: name each "
                "compressed model once"
            )
        seen[sha256] = pair


def _some(classes: Sequence[str]) -> str:
    return "/".join(classes[:3]) + ("/…" if len(classes) > 3 else "")
