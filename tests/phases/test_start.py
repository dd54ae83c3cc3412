"""Fits that start from a public model lose nothing by it, and go on from there."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from dplasso import DPLassoClassifier, DPLogisticRegression
from dplasso.phases import descend
from dplasso.phases.releases import Started
from phases.cases import PLANS, PRIOR, rows, walked


def test_vertices_and_refit_have_one_start():
    """Found once; where no vertex is drawn the gradients find it."""
    for name, place in (("lasso, prior", 2), ("prior", 2), ("prior of a short list", 2)):
        taken, released, begun = walked(PLANS[name])
        found = [k for k, one in enumerate(released.entries) if isinstance(one.release, Started)]
        assert found == [place]
        starts = [one.share for one in taken if one.phase.name == "start"]
        assert sum(share > 0.0 for share in starts) == 1
        assert "how much of the public model" in begun.statement.find("start").words


def test_the_start_of_draws_has_noise_for_the_residuals_of_all_classes_together():
    taken, _, begun = walked(PLANS["lasso, prior of three classes"])
    (start,) = (one for one in taken if one.phase.name == "start" and one.noisy)
    # The unit is that of a residual, which is at most 1/2.
    moved = {sensitivity / 2.0**33 for sensitivity, *_ in start.noisy}
    assert moved == {begun.statement.find("start").numbers["sensitivity"]} == {np.sqrt(2 / 3)}


@pytest.mark.parametrize("kind", ["short list", "drawn"])
def test_weights_of_few_columns_are_those_of_unit_rows(monkeypatch, kind):
    """Without noise it is the same model, however rows are divided on the way."""
    X, y = rows(PLANS["prior"], n_rows=400)
    given = {"classes": (0, 1), "prior": PRIOR, "epsilon": np.inf, "max_weights": 4}
    found = []
    for length in (None, 1.0):
        if length:
            monkeypatch.setattr(descend, "reach_of", lambda *_: 1.0)
        model = {"drawn": DPLassoClassifier, "short list": DPLogisticRegression}[kind](**given)
        found.append(model.fit(X, y).decision_function(X))
    assert np.corrcoef(*found)[0, 1] > 0.98
    assert found[0] != pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_good_start_survives_corrections_that_are_noise(epsilon):
    """The start is of unit rows, and rows have 5 to 80 entries; draws find next to nothing."""
    rng = np.random.default_rng(0)
    lengths, truth = rng.integers(5, 80, 6_000), 8.0 * rng.normal(size=3_000)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_array((np.ones(indptr[-1]), rng.integers(0, 3_000, indptr[-1]), indptr))
    X.sum_duplicates()
    X.data[:] = 1.0
    margins = X @ truth / np.sqrt(X.sum(axis=1))
    y = (rng.random(6_000) < 1.0 / (1.0 + np.exp(-margins))).astype(int)
    prior = truth + 4.0 * rng.normal(size=3_000)
    seen, kept = slice(0, 3_000), slice(3_000, None)
    public = roc_auc_score(y[kept], X[kept] @ prior / np.sqrt(X[kept].sum(axis=1)))
    both = []
    for seed in range(4):
        model = DPLassoClassifier(epsilon, 1e-6, classes=[0, 1], random_state=seed, prior=prior)
        margins = model.fit(X[seen], y[seen]).decision_function(X[kept])
        both.append(roc_auc_score(y[kept], margins))
    # Single draws lose .002, with a standard deviation of .002.
    assert np.mean(both) > public - 0.005


def zipf(n_rows, n_columns, seed):
    """Return rows of ten words, and a true model's labels."""
    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.5, (n_rows, 10)) - 1, n_columns - 1)
    X = sp.csr_array(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 10)),
        shape=(n_rows, n_columns),
    )
    X.sum_duplicates()
    return X


@pytest.mark.parametrize("quality", ["good", "shrunk", "noise", "loud"])
def test_a_start_does_no_harm(quality):
    rng = np.random.default_rng(0)
    X, truth = zipf(30_000, 300, 1), rng.normal(size=300)
    margins = X @ truth
    y = (rng.random(len(margins)) < 1.0 / (1.0 + np.exp(-margins))).astype(int)
    noise = rng.normal(size=300)
    prior = {
        "good": truth + noise,
        "shrunk": (truth + noise) / 5.0,
        "noise": 2.0 * noise,
        "loud": 1e5 * noise,
    }[quality]
    seen, kept = slice(0, 20_000), slice(20_000, None)

    def auc(**given):
        model = DPLogisticRegression(0.1, 1e-6, classes=[0, 1], random_state=2, **given)
        return roc_auc_score(y[kept], model.fit(X[seen], y[seen]).decision_function(X[kept]))

    alone, public = auc(), roc_auc_score(y[kept], X[kept] @ prior)
    assert auc(prior=prior) > max(alone, public) - 0.01
