"""DRepair, the repairer of the DFlare paper (§5.5.1): a perceptron from outputs to labels.

It has one hidden layer of 50 units, as in the published code, and scikit-learn trains it on the
output vectors of seeds and triggers alone, with the original's labels. It runs on the host only, as
the baseline of the tables.

`train_abstaining` adds a threshold: the perceptron's label is used only where its confidence is
above it. The threshold is the one with the best net on a fifth of the training seeds, which are
held out for that; near-boundary inputs are used to calibrate it, and not to train.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.repair.shifts.repair_samples import Labels, Samples, together
from edgeflare.repair.shifts.training_inputs import Repair, TrainingInputs

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier

HIDDEN = 50


def require_scikit_learn() -> None:
    """Refuse to go on without scikit-learn."""
    try:
        import sklearn  # noqa: F401, PLC0415 - an extra, and slow to import
    except ImportError:
        raise UserError(
            "scikit-learn is not installed, which trains what repairers are compared with: "
            "pip install 'edgeflare[repair]'"
        ) from None


def train(inputs: TrainingInputs, generator: int) -> Repair:
    """Train the paper's perceptron on seeds and triggers."""
    network = _network(inputs, generator)

    def repair(samples: Samples) -> Labels:
        return _answers(network, samples)[0]

    return repair


def train_abstaining(inputs: TrainingInputs, generator: int) -> Repair:
    """Train the perceptron, and calibrate the confidence above which its label is used."""
    folds = inputs.folds(generator)
    inner = _network(inputs.part(folds, lambda fold: fold != 0), generator)
    threshold = _calibrated(inner, inputs.part(folds, lambda fold: fold == 0))
    network = _network(inputs, generator)

    def repair(samples: Samples) -> Labels:
        labels, confidence = _answers(network, samples)
        return np.where(confidence > threshold, labels, samples.labels)

    return repair


def second_class(samples: Samples) -> Labels:
    """Return the second class of each input: the least that a repairer of triggers has to beat."""
    return samples.seconds


def _network(inputs: TrainingInputs, generator: int) -> MLPClassifier:
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra, slow to import
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    both = together([inputs.seeds, inputs.triggers])
    network = MLPClassifier((HIDDEN,), random_state=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # It takes Ctrl-C for the wish to end this fit alone, warns, and what it has would count.
        warnings.filterwarnings("error", "Training interrupted by user", UserWarning)
        try:
            return network.fit(both.vectors, both.originals)
        except UserWarning as ended:
            raise ended.__context__ or KeyboardInterrupt from None


def _answers(network: MLPClassifier, samples: Samples) -> tuple[Labels, NDArray[np.float64]]:
    if not len(samples):
        return np.empty(0, np.int64), np.empty(0)
    confidence = network.predict_proba(samples.vectors)
    return network.classes_[confidence.argmax(axis=1)], confidence.max(axis=1)


def _calibrated(network: MLPClassifier, inputs: TrainingInputs) -> float:
    """Return the threshold with the best net; 1, which nothing exceeds, where none is positive."""
    kinds = (
        (inputs.triggers, np.ones(len(inputs.triggers))),
        (inputs.agreeing, inputs.weights()),
        (inputs.seeds, np.ones(len(inputs.seeds))),
    )
    gains, sure = [], []
    for samples, weight in kinds:
        labels, confidence = _answers(network, samples)
        gained = (labels == samples.originals).astype(float) - ~samples.deviating
        gains.append(gained * weight / 3 / max(weight.sum(), 1e-12))
        sure.append(confidence)
    confidence = np.concatenate(sure)
    order = np.argsort(-confidence, kind="stable")
    net = np.cumsum(np.concatenate(gains)[order])
    best = int(net.argmax())
    if net[best] <= 0.0:
        return 1.0
    following = confidence[order[min(best + 1, len(order) - 1)]]
    return float((confidence[order[best]] + following) / 2)
