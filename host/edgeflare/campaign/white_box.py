"""The translations of a pair's original and twin, for strategies that ask for gradients."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from edgeflare.campaign.panel import Panel
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.query import Arm, WhiteboxQuery
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.strategies.strategy import WhiteboxAnswer
from edgeflare_protos.kernel_sets import Kernels

if TYPE_CHECKING:  # imported where it is asked for: it needs an extra, and takes a second
    from edgeflare.whitebox.pair_translation import ArmToTranslate, TranslatedPair


class WhiteBox:
    """Answers white-box queries. The models are translated when it is first asked to."""

    def __init__(self, pair: Pair, panel: Panel, seeds: Seeds, kernels: Kernels) -> None:
        """Take a pair.

        Args:
            pair: the pair whose models are opened.
            panel: the panel that has its arms.
            seeds: the first of them check the translations.
            kernels: those of the twin.

        """
        self._pair = pair
        self._panel = panel
        self._seeds = seeds
        self._kernels: Kernels = kernels

    def __call__(self, query: WhiteboxQuery) -> WhiteboxAnswer:
        """Answer a query."""
        return self._translated.answer(query)

    def open(self) -> TranslatedPair:
        """Translate both models, and check the translations on the first seeds.

        Raises:
            UserError: the extra is missing; there is no original; or a model, or what stands before
                it, cannot be differentiated.

        """
        return self._translated

    @cached_property
    def _translated(self) -> TranslatedPair:
        from edgeflare.whitebox.pair_translation import TranslatedPair  # noqa: PLC0415

        pair = self._pair
        if pair.original is None:
            raise UserError(
                "gradients are those of the original and of the compressed model, and there is no"
                " original: name it with --original"
            )
        domain = pair.interface.domain
        if not domain.space.ordered:
            raise UserError(
                f"values of the domain {domain.name} are names and no quantities, by which nothing"
                " can be differentiated"
            )
        arms = {
            Arm.ORIGINAL: self._arm(Arm.ORIGINAL, str(pair.original), TWIN_KERNELS),
            Arm.TWIN: self._arm(Arm.TWIN, str(pair.executed), self._kernels),
        }
        return TranslatedPair(arms, domain.space.level)

    def _arm(self, arm: Arm, source: str, kernels: Kernels) -> ArmToTranslate:
        from edgeflare.whitebox.pair_translation import ArmToTranslate  # noqa: PLC0415
        from edgeflare.whitebox.translation_check import CHECKED_SEEDS  # noqa: PLC0415

        model = self._panel.host(arm)
        if model.fixed is not None:
            raise UserError(
                f"{source} has several inputs, and networks with one are differentiated"
            )
        return ArmToTranslate(
            source,
            kernels,
            model.evaluator.signature.input.shape,
            model.encoder,
            model.decoder,
            list(model.encoder.encode(self._seeds.inputs[:CHECKED_SEEDS])),
        )
