"""Broken implementations that the audits must refute, each with the claim of the right one."""

import os
from collections import namedtuple
from dataclasses import replace

import numpy as np
from evidence.audit.exact import SolverTarget
from evidence.audit.solver import mechanism_of, solver_target

from dplasso.privacy.randomness import random_stream, stream_from_key

# What a fit releases.
Steps = namedtuple("Steps", "vertex sign")


def seeded():
    """Return the same course of fresh keys for every target: power must not depend on luck."""
    keys = np.random.default_rng(0)
    return lambda: stream_from_key(keys.integers(0, 2**32, 8, dtype=np.uint32))


def broken(settings, alter):
    return solver_target(settings, alter=alter, new_stream=seeded())


def factor_two_dropped(settings):
    """The log-probabilities move both ways, so a step costs 2 c s; this pays for c s."""
    return broken(settings, lambda m, n: replace(m, exponent=2.0 * m.exponent))


def scaled_by_records(settings):
    """A scale for the mean gradient, N times finer, on the sum."""
    return broken(settings, lambda m, n: replace(m, exponent=m.exponent * n))


def replacement_as_addition(settings):
    """Claims replace-one, calibrates for add-remove."""
    claimed = replace(settings, neighbors="replace-one")
    wrong = mechanism_of(replace(settings, neighbors="add-remove"), 1)
    return broken(claimed, lambda m, n: wrong)


def composition_forgotten(settings):
    """Every step gets what one step alone could spend."""
    alone = mechanism_of(replace(settings, n_iter=1), 1)
    return broken(settings, lambda m, n: alone)


def laplace_as_exponential(settings):
    """Laplace noise of scale 1/c on every vertex's score, paid for as the exponential mechanism."""
    right = solver_target(settings)

    def step(data, prefix):
        # The exponential mechanism's log-probabilities are its scores, up to a constant.
        scores = right.step(data, prefix)
        return np.log(laplace_noisy_max(scores.ravel())).reshape(scores.shape)

    return SolverTarget(right.claim, right.fit, step)


def laplace_noisy_max(scores):
    """Return P(score + standard Laplace noise is the largest) by quadrature, to about 1e-12."""
    beyond = np.arange(1.0, 45.0)
    edges = np.unique(np.concatenate([scores, scores.min() - beyond, scores.max() + beyond]))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    x = (middle[:, None] + half[:, None] * nodes).ravel()
    area = (half[:, None] * weights).ravel()
    away = x[:, None] - scores
    density = 0.5 * np.exp(-np.abs(away))
    below = np.where(away < 0, density, 1.0 - density)
    everything = below.prod(axis=1, keepdims=True)
    probabilities = (area[:, None] * density * everything / below).sum(axis=0)
    return probabilities / probabilities.sum()


def noise_reused(settings):
    """The same key in every fit."""
    return solver_target(settings, new_stream=lambda: random_stream(7))


def byte_as_seed(settings):
    """256 streams in all, as once shipped in a benchmark of private learners."""

    def new_stream():
        return stream_from_key(np.full(8, os.urandom(1)[0], dtype=np.uint32))

    return solver_target(settings, new_stream=new_stream)


def true_sign(settings):
    """The published step: the coordinate with noise, its sign without."""
    return solver_target(replace(settings, mechanism="paper"), new_stream=seeded())
