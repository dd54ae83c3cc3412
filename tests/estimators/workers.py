"""Functions that run in other processes, where test modules cannot be imported."""

import numpy as np
from sklearn.base import clone

from dplasso import DPFrankWolfeClassifier


def noise_data():
    """Labels that have nothing to do with the rows: all 402 vertices are about as likely."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 200)) < 0.1).astype(np.float32)
    return X, rng.integers(0, 2, 60)


def fingerprint(estimator, X=None, y=None):
    """Return the transcript as one number; also a scorer."""
    vertex, sign = estimator.transcript_.vertex, estimator.transcript_.sign
    return float(hash((vertex.tobytes(), sign.tobytes())) % 2**52)


def transcript_of(estimator):
    """Fit a copy; return what it drew."""
    taken = clone(estimator).fit(*noise_data()).transcript_
    return tuple(taken.vertex.tolist()), tuple(taken.sign.tolist())


def transcript_of_default():
    return transcript_of(DPFrankWolfeClassifier(n_iter=20))
