"""DRepair as the paper has it (§5.5.1): a perceptron from output vectors to original labels.

One hidden layer of 50 units, as the published code has it, trained by scikit-learn on the vectors
of seeds and triggers alone. It stays on the host, as what the tables compare with.

`abstaining` is the same with a threshold: it answers only where it is confident enough. The
threshold is the one with the best net on a fifth of the training seeds, which are held out for
that; near-boundary inputs are then among what it is calibrated on, and not among what it learns.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.repair.repair_samples import Labels, Samples, together
from edgeflare.repair.training_inputs import Repair, TrainingInputs

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier

HIDDEN = 50


def require_scikit_learn() -> None:
    """Refuse to go on without scikit-learn.

    Raises:
        UserError: it is not installed.

    """
    try:
        import sklearn  # noqa: F401, PLC0415 - an extra, and slow to import
    except ImportError:
        raise UserError(
            "scikit-learn is not installed, which trains what repairers are compared with: "
            "pip install 'edgeflare[repair]'"
        ) from None


def train(material: TrainingInputs, generator: int) -> Repair:
    """Train the paper's perceptron on seeds and triggers."""
    network = _network(material, generator)

    def repair(samples: Samples) -> Labels:
        return _answers(network, samples)[0]

    return repair


def train_abstaining(material: TrainingInputs, generator: int) -> Repair:
    """Train the perceptron, and calibrate the confidence from which it may answer."""
    folds = material.folds(generator)
    inner = _network(material.part(folds, lambda fold: fold != 0), generator)
    threshold = _calibrated(inner, material.part(folds, lambda fold: fold == 0))
    network = _network(material, generator)

    def repair(samples: Samples) -> Labels:
        labels, confidence = _answers(network, samples)
        return np.where(confidence > threshold, labels, samples.labels)

    return repair


def second_class(samples: Samples) -> Labels:
    """Answer with the second class, always: what any repairer of triggers has to beat."""
    return samples.seconds


def _network(material: TrainingInputs, generator: int) -> MLPClassifier:
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra, slow to import
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    both = together([material.seeds, material.triggers])
    network = MLPClassifier((HIDDEN,), random_state=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network.fit(both.vectors, both.originals)


def _answers(network: MLPClassifier, samples: Samples) -> tuple[Labels, NDArray[np.float64]]:
    if not len(samples):
        return np.empty(0, np.int64), np.empty(0)
    confidence = network.predict_proba(samples.vectors)
    return network.classes_[confidence.argmax(axis=1)], confidence.max(axis=1)


def _calibrated(network: MLPClassifier, material: TrainingInputs) -> float:
    """Return the threshold with the best net; one that nothing exceeds where none has any."""
    mixture = material.mixture
    weights = material.weights()
    kinds = (
        (material.triggers, np.ones(len(material.triggers)), mixture.triggers),
        (material.agreeing, weights, mixture.agreeing),
        (material.seeds, np.ones(len(material.seeds)), mixture.seeds),
    )
    gains, sure = [], []
    for samples, weight, share in kinds:
        labels, confidence = _answers(network, samples)
        gained = (labels == samples.originals).astype(float) - ~samples.deviating
        gains.append(gained * weight * share / max(weight.sum(), 1e-12))
        sure.append(confidence)
    confidence = np.concatenate(sure)
    order = np.argsort(-confidence, kind="stable")
    net = np.cumsum(np.concatenate(gains)[order])
    best = int(net.argmax())
    if net[best] <= 0.0:
        return 1.0
    following = confidence[order[min(best + 1, len(order) - 1)]]
    return float((confidence[order[best]] + following) / 2)
