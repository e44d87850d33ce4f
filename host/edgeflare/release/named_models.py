"""What a check is about, as the user names it: a pair, two models, or a compressed one alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Final

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite import ModelRefused
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.pair_assumptions import assumed_of, loaded_pair
from edgeflare.release.pair_check import command_about
from edgeflare.release.sections import Named
from edgeflare.trust import Trust

_MOST_MODELS: Final = 2

_NO_NAMES: Final = frozenset({"compressed", "model", "quantized"})
"""Names of files that say nothing of the model: that of their folder stands for it."""


@dataclass(frozen=True, slots=True)
class NamedModels:
    """What the user names.

    Attributes:
        pair: folder of a `pair.toml`; None where models are named by themselves.
        original: the original model; None where none is named.
        compressed: the compressed model; None where none is named beside the pair's.
        inputs: the inputs; None where none are named beside the pair's.

    """

    pair: Path | None
    original: str | None
    compressed: str | None
    inputs: Path | None

    @classmethod
    def of(
        cls,
        models: Sequence[Path],
        inputs: Path | None,
        original: str | None = None,
        compressed: str | None = None,
    ) -> NamedModels:
        """Return what arguments and options name.

        Args:
            models: a pair; an original and a compressed model; or a compressed model.
            inputs: the inputs; None where none are named.
            original: the original model, where it is named by itself.
            compressed: the compressed model, likewise.

        Raises:
            UserError: there are too many of them, or a model is named twice.

        """
        if len(models) > _MOST_MODELS:
            raise UserError(
                f"{len(models)} paths are too many: name a pair, or an original and a compressed"
                " model"
            )
        if len(models) <= 1 and not (models and models[0].suffix.lower() == ".tflite"):
            return cls(models[0] if models else None, original, compressed, inputs)
        if compressed is not None or (original is not None and len(models) == _MOST_MODELS):
            raise UserError("a model is named twice: name it as an argument or as an option")
        first = str(models[0]) if len(models) == _MOST_MODELS else original
        return cls(None, first, str(models[-1]), inputs)

    @property
    def draws(self) -> bool:
        """Whether inputs are drawn, since there is neither an original nor data."""
        return self.pair is None and self.original is None and self.inputs is None

    def load(self, given: Settings, decided: Trust) -> LoadedModels:
        """Read the pair, or assume what makes one of models that have no `pair.toml`.

        Args:
            given: what the user says, the models and inputs among it.
            decided: the user's decision on Python functions.

        Raises:
            UserError: it is not what it should be, or there is nothing to check.

        """
        if self.draws:
            return LoadedModels(self, self._alone(), None)
        if self.pair is not None or self.compressed is None:
            return LoadedModels(self, load_pair(self.pair, given, decided, "--inputs"), None)
        assumed = assumed_of(Path(self.compressed), given)
        pair = loaded_pair(assumed, given, decided)
        if pair.name in _NO_NAMES:
            pair = replace(pair, name=pair.compressed.resolve().parent.name or pair.name)
        return LoadedModels(self, pair, assumed)

    def _alone(self) -> Pair:
        if self.compressed is None:
            raise UserError(
                "there is nothing to check: name a pair, two models with --inputs, or a .tflite"
                " alone"
            )
        path = Path(self.compressed)
        return Pair(path.stem, None, path, path)

    def completed_by(self) -> str:
        """Return what to type where nothing but a `pair.toml` tells what models take and give."""
        models = " ".join(quote(file) for file in (self.original, self.compressed) if file)
        data = "" if self.inputs is None else f" --inputs {quote(str(self.inputs))}"
        return (
            f"next: edgeflare check {models}{data} --write-pair pair, correct pair/pair.toml"
            " (docs/pairs.md), then: edgeflare check pair"
        )


@dataclass(frozen=True, slots=True)
class LoadedModels:
    """A pair that was read, or made of models that came without a `pair.toml`.

    Attributes:
        named: what the user names.
        pair: the pair.
        assumed: what was assumed of the models; None of a pair.

    """

    named: NamedModels
    pair: Pair
    assumed: Assumption | None

    @property
    def guessed(self) -> str:
        """What was assumed of how inputs are prepared and may well be wrong; empty for nothing."""
        return "" if self.assumed is None else self.assumed.guessed

    def require_known(self, *, mend: bool) -> None:
        """Refuse models of which too little is known, or of which one is needed and missing.

        Args:
            mend: whether a repair is asked for.

        """
        assumed = self.assumed
        if assumed is not None and assumed.refused:
            then = f"; {self.named.completed_by()}" if assumed.lines else ""
            raise UserError(f"{assumed.refused}{then}")
        if mend and self.pair.original is None:
            raise UserError("--mend repairs a file towards its original: name that, too")

    @contextmanager
    def naming_next(self) -> Iterator[None]:
        """Say what to type, where something was assumed of models that are refused."""
        try:
            yield
        except ModelRefused:
            raise
        except UserError as refused:
            if self.assumed is None or not self.assumed.notes:
                raise
            raise UserError(
                f"{refused}; where what is assumed of these models is wrong,"
                f" {self.named.completed_by()}"
            ) from None

    def further(self, out: Path, device: str) -> Named:
        """Return what makes commands that look further.

        Args:
            out: folder of the check, which has the `pair.toml` of models that came without one.
            device: name of the first device.

        """
        named = self.named
        folder = None if named.draws else str(named.pair or out)
        own = named.inputs if named.pair is not None else None
        return command_about(folder, str(self.pair.compressed), own, device)
