"""DPLogisticRegression: rows, short lists, people, and what its statement says."""

import numpy as np
import pytest
from scipy.special import expit

from dplasso import DPLassoClassifier, DPLogisticRegression
from estimators.kinds import few, numbers

INF = float("inf")


def model(**options):
    return DPLogisticRegression(**({"random_state": 0} | options))


@pytest.fixture(scope="module")
def data():
    X, y = few()
    return X.toarray().astype(np.float64), y


def test_any_finite_entries_will_do(data):
    X, y = data
    huge = X * 10.0 ** np.linspace(-280, 300, 120)[:, None]
    for options in ({}, {"max_weights": 3}, {"epsilon": INF}):
        fitted = model(**options).fit(huge, y)
        assert np.isfinite(numbers(fitted)).all()
        # A row counts by its direction alone, unless columns are centred.
        if not options.get("epsilon"):
            small = numbers(model(**options).fit(X, y))
            np.testing.assert_allclose(numbers(fitted), small, rtol=1e-5)


def test_max_weights_in_all_its_forms(data):
    X, y = data
    dense = model(epsilon=20.0).fit(X, y)
    assert isinstance(dense.coef_, np.ndarray)
    short = model(epsilon=20.0, max_weights=4).fit(X, y)
    assert short.coef_.nnz == 4
    assert 0 in short.coef_.indices
    assert (short.predict(X) == y).mean() > 0.8
    # As many as there are columns is no choice.
    np.testing.assert_array_equal(
        numbers(model(epsilon=20.0, max_weights=12).fit(X, y)), numbers(dense)
    )


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPLassoClassifier])
def test_columns_of_a_short_list_do_not_repeat_each_other(estimator):
    rng = np.random.default_rng(7)
    strong, weak, other = rng.normal(size=(3, 4000))
    copies = strong[:, np.newaxis] + 0.3 * rng.normal(size=(4000, 5))
    X = np.column_stack([copies, weak, other])
    y = 2.0 * strong + weak + rng.logistic(size=4000) > 0.0
    for seed in range(3):
        short = estimator(3.0, max_weights=2, classes=[False, True], random_state=seed).fit(X, y)
        # Five copies have larger weights than the weak column, but say the same.
        assert 5 in short.coef_.indices
        assert short.coef_.indices.min() < 5


def test_columns_that_are_nearly_constant_do_not_enter_for_the_intercept():
    rng = np.random.default_rng(0)
    often = np.concatenate([[0.5, 0.1, 0.95, 0.9, 0.97], np.full(25, 0.2)])
    X = (rng.random((20_000, 30)) < often).astype(float)
    y = 2.0 * X[:, 0] + 2.5 * X[:, 1] - 3.2 + rng.logistic(size=20_000) > 0.0
    for seed in range(3):
        short = model(max_weights=2, classes=[False, True], random_state=seed).fit(X, y)
        assert short.coef_.indices.tolist() == [0, 1]


def test_columns_enter_by_what_they_explain():
    """The other column has the larger gradient, because its entries are larger."""
    rng = np.random.default_rng(0)
    group, number, other = rng.random(16_000) < 0.5, *rng.normal(size=(2, 16_000))
    y = 2.2 * (group - 0.5) + 0.9 * number + rng.logistic(size=16_000) > 0.0
    X = np.column_stack([group, 20.0 + number, 20.0 + other])
    for seed in range(3):
        short = model(max_weights=1, classes=[False, True], random_state=seed).fit(X, y)
        assert short.coef_.indices.tolist() == [0]


def test_a_cut_keeps_columns_in_other_units():
    rng = np.random.default_rng(0)
    units = np.where(np.arange(310) < 200, 1.0, 100.0)
    X = rng.normal(size=(4000, 310))
    y = X[:, 0] + X[:, 150] + X[:, 300] + rng.logistic(size=4000) > 0.0
    short = model(epsilon=10.0, max_weights=3, classes=[False, True]).fit(X * units, y)
    assert short.coef_.indices.tolist() == [0, 150, 300]


@pytest.mark.parametrize("max_weights", [1, None])
def test_centred_columns_keep_their_lengths(max_weights):
    rng = np.random.default_rng(3)
    X = 20.0 + rng.normal(size=(4000, 3))
    y = 2.0 * (X[:, 0] - 20.0) + rng.logistic(size=4000) > 0.0
    fitted = model(epsilon=3.0, max_weights=max_weights, classes=[False, True]).fit(X, y)
    margins = fitted.decision_function([[20.5, 20.0, 20.0], [21.5, 20.0, 20.0]])
    # A unit row with one entry has its sign alone.
    assert margins[1] > 2.0 * margins[0] > 0.0


def test_without_an_intercept_there_is_none_and_without_noise_no_error(data):
    assert model(fit_intercept=False).fit(*data).intercept_.tolist() == [0.0]
    assert model(epsilon=INF).fit(*data).coef_standard_error_.tolist() == [0.0] * 12


def test_probabilities_are_the_inverse_link_of_the_bound(data):
    X, y = data
    for options, bound in (({}, 0.5), ({"epsilon": INF}, 1.0)):
        fitted = model(**options).fit(X, y)
        assert fitted.privacy_.find("gradients").numbers["residual_bound"] == bound
        margins = fitted.decision_function(X)
        # Where the residual of the rarer class is clipped, the likelier one has the odds C / s.
        s = expit(-np.abs(margins))
        rarer = np.where(s < 1.0 - bound, s / (s + bound), s)
        expected = np.where(margins < 0.0, rarer, 1.0 - rarer)
        np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], expected, rtol=1e-12)
        np.testing.assert_array_equal(fitted.predict_log_proba(X), np.log(fitted.predict_proba(X)))
        assert (fitted.predict(X) == fitted.classes_[(margins > 0).astype(int)]).all()


@pytest.mark.parametrize(
    ("options", "use"),
    [
        ({}, "counted privately by class"),
        ({"neighbors": "replace-one"}, "counted privately by class"),
        ({"fit_intercept": False}, "counted privately"),
        ({"fit_intercept": False, "neighbors": "replace-one"}, "given as public"),
        # Replacing a person of one row by one of two moves the number of rows.
        (
            {"fit_intercept": False, "neighbors": "replace-one", "rows_per_person": 2},
            "counted privately",
        ),
        ({"epsilon": INF}, "not used"),
    ],
)
def test_the_statement_says_how_the_number_of_records_was_used(data, options, use):
    assert model(**options).fit(*data).privacy_.records == use


def test_the_statement_in_words(data):
    statement = model(random_state=None).fit(*data).privacy_
    assert (statement.mechanism, statement.steps) == ("gaussian", 400)
    assert statement.epsilon == pytest.approx(1.0, rel=1e-9)
    assert (
        "How: noisy counts of the two classes; up to three noisy counts of the magnitudes of every "
        "column's entries; up to two noisy sums of the entries of every column without zeros; "
        "noisy sums of the squared entries of every column; at most 400 gradients over all "
        "records, each with Gaussian noise; and 60 such"
    ) in statement.text()
    assert "0.2368-GDP" in statement.text()
