"""The tables of weights: where noise alone could have picked one, and corrections of a prior."""

import json
import zipfile
from math import comb

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dplasso import DPLassoClassifier, DPLogisticRegression, ModelFileError, load
from dplasso.model.linear import ARRAYS, MatchedPrior
from dplasso.model.weights import Weights, count_of, steps_beyond_chance, weights_of
from dplasso.report.page import model_facts, report_section


def reference(n_steps, n_vertices):
    """Sum the binomial terms, count by count."""
    p = 1 / n_vertices
    terms = [comb(n_steps, k) * p**k * (1 - p) ** (n_steps - k) for k in range(n_steps + 1)]
    for count in range(1, n_steps + 1):
        if n_vertices * sum(terms[count:]) <= 0.05:
            return count
    return n_steps + 1


@pytest.mark.parametrize("n_steps", [1, 2, 10, 100, 400])
@pytest.mark.parametrize("n_vertices", [2, 6, 80, 10**4, 10**9])
def test_it_is_the_union_bound(n_steps, n_vertices):
    assert steps_beyond_chance(n_steps, n_vertices) == reference(n_steps, n_vertices)


def test_uniform_draws_are_rarely_called_clear():
    """Of 2,000 runs 5 % may be: more than 120 of them have a chance of 2 % at exactly 5 %."""
    rng = np.random.default_rng(0)
    runs = [np.bincount(rng.integers(0, 80, 60), minlength=80).max() for _ in range(2_000)]
    clear = steps_beyond_chance(60, 80)
    assert (np.array(runs) >= clear).sum() <= 120
    # One less would be too few: the mark is not merely shy.
    assert (np.array(runs) >= clear - 1).sum() > 120


def test_a_model_without_weights_is_an_empty_table():
    nothing = Weights(np.zeros(0, dtype=np.int64), np.zeros(0))
    assert nothing.to_pandas().empty
    assert (len(nothing), nothing.rows(), repr(nothing)) == (0, [], "(no column has a weight)")


def test_a_data_frame_of_weights_names_its_columns():
    table = Weights(np.array([3, 1]), np.array([0.5, -2.0]), np.array(["a", "b"], dtype=object))
    assert list(table) == [("a", 0.5), ("b", -2.0)]
    frame = pd.DataFrame(table.top(5))
    assert frame.to_dict("list") == {"name": ["b", "a"], "weight": [-2.0, 0.5]}


RNG = np.random.default_rng(2)
X = sp.csr_array((RNG.random((300, 30)) < 0.3).astype(float))
Y = (X @ RNG.normal(size=30) > 0).astype(int)
DENSE = RNG.normal(size=(1, 30))


def test_a_file_holds_a_prior_of_several_classes_with_its_errors(tmp_path):
    labels = np.arange(300) % 3
    first = DPLogisticRegression(random_state=0).fit(X, labels)
    model = DPLogisticRegression(prior=first).fit(X, labels)
    model.save(tmp_path / "m.npz")
    ours, again = model.model_.prior, load(tmp_path / "m.npz").model_.prior
    assert (again.source, again.digest) == (ours.source, ours.digest)
    for name in ("weights", "intercept", "standard_error"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ours, name))
    assert again.weights.shape == (3, 30)
    assert again.standard_error.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": DENSE * np.nan}, "NaN or infinity"),
        ({"intercept": np.array([np.inf])}, "NaN or infinity"),
        ({"standard_error": DENSE * np.inf}, "NaN or infinity"),
        ({"intercept": np.zeros(2)}, "do not fit together"),
        ({"standard_error": np.zeros((1, 29))}, "do not fit its weights"),
    ],
)
def test_numbers_that_are_no_model_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        MatchedPrior(**{"weights": DENSE, "intercept": np.zeros(1), "source": "x"} | changes)


@pytest.fixture(scope="module", params=["logistic", "lasso", "lasso, all columns", "short list"])
def model(request):
    kinds = {
        "logistic": DPLogisticRegression(),
        "lasso": DPLassoClassifier(5.0, max_weights=6),
        "lasso, all columns": DPLassoClassifier(5.0),
        "short list": DPLogisticRegression(max_weights=4),
    }
    prior = {j: weight for j, weight in enumerate(DENSE[0]) if j % 3}
    return kinds[request.param].set_params(prior=prior, random_state=0).fit(X, Y)


def test_a_saved_model_predicts_the_same_and_knows_where_it_started(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.privacy_.prior == model.privacy_.prior
    assert again.model_.prior.digest == model.model_.prior.digest == again.prior.digest
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        header = json.loads(bytes(np.load(archive.open("header.npy"))))
    assert not {"prior", "public_data", "prior_standard_error"} & header["params"].keys()
    assert header["prior"]["source"] in header["privacy"]["prior"]


def test_a_loaded_model_fits_again_from_the_same_prior(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz").set_params(random_state=0)
    np.testing.assert_array_equal(again.fit(X, Y).decision_function(X), model.decision_function(X))


def test_the_table_lists_what_was_corrected_and_what_came_of_it(model):
    table, coefficients = weights_of(model.model_), np.asarray(model.coef_)
    released = model.model_.linear.coefficients
    corrections = released if isinstance(released, np.ndarray) else released.toarray()
    assert table.columns.tolist() == np.flatnonzero(corrections[0]).tolist()
    np.testing.assert_array_equal(table.correction, corrections[0, table.columns])
    np.testing.assert_array_equal(table.values, coefficients[0, table.columns])
    told = f"{len(table):,} corrections to the public model"
    assert count_of(table) == told == model_facts(model.model_, table)["weights"]
    assert all({"weight", "correction"} <= row.keys() for row in table.top(3).rows())
    assert "correction" in repr(table)
    page = report_section(model.model_)
    assert "starts from" in page
    assert "corrected by" in page


def test_without_a_prior_nothing_is_said_of_one(tmp_path):
    model = DPLogisticRegression(random_state=0).fit(X, Y)
    assert model.privacy_.prior == ""
    assert "starts from" not in model.privacy_.text()
    assert "correction" not in weights_of(model.model_).rows()[0]
    model.save(tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        assert not {f"{name}.npy" for name in ARRAYS} & set(archive.namelist())


def test_a_file_whose_prior_was_exchanged_is_damaged(tmp_path, monkeypatch):
    model = DPLogisticRegression(random_state=0, prior=DENSE).fit(X, Y)
    real = type(model.model_.prior).arrays
    for name in ("prior_weight", "prior_place"):

        def changed(self, name=name):
            return {**real(self), name: np.ones(30, dtype=ARRAYS[name])}

        monkeypatch.setattr(type(model.model_.prior), "arrays", changed)
        model.save(tmp_path / "m.npz")
        with pytest.raises(ModelFileError):
            load(tmp_path / "m.npz")
