"""Functions that run in other processes, where test modules cannot be imported."""

import numpy as np

from dplasso import DPFrankWolfeClassifier


def noise_data():
    """Labels that have nothing to do with the rows: all 402 vertices are about as likely."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 200)) < 0.1).astype(np.float32)
    return X, rng.integers(0, 2, 60)


def drawn(estimator):
    """Return what a fitted model drew."""
    taken = estimator.transcript_
    return tuple(taken.vertex.tolist()), tuple(taken.sign.tolist())


def drawn_by_default():
    return drawn(DPFrankWolfeClassifier(n_iter=20).fit(*noise_data()))
