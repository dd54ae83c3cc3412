"""The estimator: its interface, what it returns, and what does not change the result."""

import doctest
import inspect
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import dplasso.estimators.lasso
from dplasso import DPLassoClassifier, PrivacyLeakWarning, load
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.hooks import Hooks
from frank_wolfe.cases import dense_rows, some_labels

INF = float("inf")
EXACT = {"epsilon": INF, "l1_radius": 2.0, "n_iter": 30, "drift_tol": 0.0}


@pytest.fixture
def data():
    """Rows of six features of which the first two decide the label."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 6)) < 0.5, rng.uniform(-1, 1, (1000, 6)), 0.0)
    y = (X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=1000) > 0).astype(int)
    return sp.csr_array(X.astype(np.float32)), y


def test_the_interface_is_the_documented_one():
    parameters = inspect.signature(DPLassoClassifier).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert defaults == {
        "epsilon": 1.0,
        "delta": 1e-6,
        "l1_radius": "auto",
        "n_iter": "auto",
        "refit": "auto",
        "feature_bound": 1.0,
        "residual_bound": "auto",
        "neighbors": "add-remove",
        "fit_intercept": True,
        "n_records": None,
        "rows_per_person": 1,
        "weight_bound": None,
        "class_weight": None,
        "classes": None,
        "mechanism": "exponential",
        "solver": "sparse",
        "selector": "bucket",
        "drift_tol": "auto",
        "random_state": None,
        "n_jobs": None,
        "verbose": 0,
        "ledger": None,
        "dataset": None,
        "purpose": None,
    }
    positional = [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    assert positional == ["epsilon", "delta"]


def test_the_docstring_s_example_runs():
    results = doctest.testmod(dplasso.estimators.lasso)
    assert results.attempted > 5
    assert results.failed == 0


class TestFittedModel:
    def test_the_weights_follow_from_the_transcript(self, data):
        X, y = data
        model = DPLassoClassifier(random_state=0, n_iter=100, l1_radius=7.0, feature_bound=0.5).fit(
            X, y
        )
        w = np.zeros(7)
        steps = zip(model.transcript_.vertex, model.transcript_.sign, strict=True)
        for step, (j, s) in enumerate(steps, start=1):
            w *= 1.0 - 2.0 / (step + 2.0)
            w[j] += 2.0 / (step + 2.0) * s * 7.0
        assert isinstance(model.coef_, sp.csr_array)
        assert model.coef_.shape == (1, 6)
        np.testing.assert_allclose(model.coef_.toarray().ravel(), w[:6], atol=1e-12)
        # The constant column has the value of the bound.
        np.testing.assert_allclose(model.intercept_, [0.5 * w[6]], atol=1e-12)
        assert np.abs(model.coef_).sum() + abs(model.intercept_[0]) / 0.5 < 7.0
        assert model.n_iter_ == len(model.transcript_) == 100
        assert model.n_features_in_ == 6

    def test_there_are_at_most_as_many_weights_as_steps(self):
        X = sp.random_array((50, 1000), density=0.02, format="csr", rng=np.random.default_rng(0))
        y = np.arange(50) % 2
        model = DPLassoClassifier(n_iter=5).fit(X, y)
        assert 0 < model.coef_.nnz <= 5
        assert model.coef_.has_sorted_indices

    def test_without_intercept(self, data):
        model = DPLassoClassifier(n_iter=50, l1_radius=10.0, fit_intercept=False).fit(*data)
        np.testing.assert_array_equal(model.intercept_, [0.0])
        assert model.transcript_.vertex.max() < 6

    def test_predictions_agree_with_each_other(self, data):
        X, y = data
        labels = np.array(["ham", "spam"])[y]
        model = DPLassoClassifier(feature_bound=0.5, **EXACT).fit(X, labels)
        margins = np.clip(X.toarray(), -0.5, 0.5) @ model.coef_.toarray().ravel()
        margins += model.intercept_
        np.testing.assert_allclose(model.decision_function(X), margins, atol=1e-12)
        assert model.classes_.tolist() == ["ham", "spam"]
        np.testing.assert_array_equal(model.predict(X) == "spam", margins > 0)
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-margins)), atol=1e-12)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-15)
        # A quarter of the rows has neither of the two features that matter.
        assert model.score(X, labels) > 0.84

    def test_probabilities_do_not_overflow(self, data):
        X, y = data
        model = DPLassoClassifier(**EXACT | {"l1_radius": 1e6}).fit(X, y)
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all()
        assert proba.min() < 1e-300

    def test_a_margin_of_zero_is_the_first_class(self, data):
        model = DPLassoClassifier(fit_intercept=False, **EXACT).fit(*data)
        nothing = np.zeros((1, 6))
        assert model.predict(nothing) == [0]
        np.testing.assert_array_equal(model.predict_proba(nothing), [[0.5, 0.5]])

    def test_saved_and_loaded_it_is_the_same(self, data, tmp_path):
        X, y = data
        for options in ({}, EXACT, {"classes": (1, 0), "random_state": 3}):
            model = DPLassoClassifier(**options).fit(X, y)
            model.save(tmp_path / "model.npz")
            again = load(tmp_path / "model.npz")
            assert again.transcript_ == model.transcript_
            assert again.privacy_ == model.privacy_
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
            assert sorted(vars(again)) == sorted(name for name in vars(model) if name != "work_")

    def test_history_belongs_to_runs_without_privacy(self, data):
        model = DPLassoClassifier(**EXACT).fit(*data)
        assert model.history_.objective.shape == model.history_.gap.shape == (30,)
        assert model.history_.objective[0] == pytest.approx(math.log(2))
        assert model.history_.objective[-1] < model.history_.objective[0]
        assert model.work_.touched.sum() > 0
        model.set_params(epsilon=1.0).fit(*data)
        assert not hasattr(model, "history_")
        assert not hasattr(model, "work_")


class TestClasses:
    def test_the_declared_order_is_kept(self, data):
        X, y = data
        one, other = (DPLassoClassifier(classes=c, **EXACT).fit(X, y) for c in [(0, 1), (1, 0)])
        assert one.classes_.tolist() == [0, 1]
        assert other.classes_.tolist() == [1, 0]
        # Taken the other way round, everything but the labels changes sign.
        assert one.transcript_.vertex[0] == other.transcript_.vertex[0]
        assert one.transcript_.sign[0] == -other.transcript_.sign[0]
        np.testing.assert_allclose(one.coef_.toarray(), -other.coef_.toarray(), atol=0.1)
        clear = np.abs(one.decision_function(X)) > 0.2
        assert clear.sum() > 500
        np.testing.assert_array_equal(one.predict(X)[clear], other.predict(X)[clear])

    @pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 2.0], [3, 9]])
    def test_predictions_are_the_labels_given(self, data, labels):
        X, y = data
        model = DPLassoClassifier(**EXACT).fit(X, np.array(labels)[y])
        found = model.predict(X)
        assert sorted(set(found.tolist())) == labels
        assert found.dtype == np.array(labels).dtype

    @pytest.mark.parametrize("present", [0, 1])
    def test_one_label_is_enough_where_both_are_declared(self, data, present):
        X, y = data
        model = DPLassoClassifier(classes=(0, 1), **EXACT).fit(X, np.full_like(y, present))
        assert model.classes_.tolist() == [0, 1]
        assert (model.predict(X) == present).all()
        assert model.privacy_.classes == "declared"


class TestUnfitted:
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
    def test_it_says_so(self, data, method):
        with pytest.raises(NotFittedError):
            getattr(DPLassoClassifier(), method)(data[0])

    def test_it_cannot_be_saved(self, tmp_path):
        with pytest.raises(NotFittedError):
            DPLassoClassifier().save(tmp_path / "model.npz")
        assert not list(tmp_path.iterdir())

    def test_an_interrupted_fit_leaves_no_model(self, data):
        def stop(done, total):
            raise KeyboardInterrupt

        model = DPLassoClassifier()
        with pytest.raises(KeyboardInterrupt):
            fit_estimator(model, *data, Hooks(progress=stop))
        with pytest.raises(NotFittedError):
            model.predict(data[0])


class TestLearning:
    def test_more_epsilon_learns_what_no_privacy_learns(self, data):
        X, y = data
        options = {"n_iter": 10, "l1_radius": 2.0, "random_state": 0}
        plain = DPLassoClassifier(epsilon=INF, **options).fit(X, y)
        reached = [
            DPLassoClassifier(epsilon=epsilon, **options).fit(X, y).score(X, y)
            for epsilon in (0.01, 1.0, 1000.0)
        ]
        assert plain.score(X, y) > 0.84
        assert reached[0] < 0.7 < reached[1]
        assert reached[2] == pytest.approx(plain.score(X, y), abs=0.01)

    @pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
    @pytest.mark.parametrize("selector", ["bucket", "noisy-max"])
    @pytest.mark.parametrize("solver", ["sparse", "standard"])
    def test_weights_point_the_right_way(self, data, neighbors, selector, solver):
        model = DPLassoClassifier(
            epsilon=200.0,
            n_iter=10,
            l1_radius=2.0,
            neighbors=neighbors,
            selector=selector,
            solver=solver,
        ).fit(*data)
        w = model.coef_.toarray().ravel()
        # With this much budget a wrong sign on either has probability below 1e-9.
        assert w[0] > 0.5
        assert w[1] < -0.5
        assert model.privacy_.is_private
        assert model.privacy_.neighbors == neighbors

    def test_replace_one_draws_at_half_the_scale(self):
        params = {"epsilon": 1.0, "n_iter": 10}
        data = dense_rows(20, 3, 0), some_labels(20, 0)
        one, other = (
            DPLassoClassifier(neighbors=n, **params).fit(*data).privacy_
            for n in ("add-remove", "replace-one")
        )
        assert one.eps0 == other.eps0
        assert other.sensitivity == 2 * one.sensitivity

    def test_the_intercept_learns_an_imbalance(self):
        X = sp.csr_array((300, 4), dtype=np.float32)
        y = np.r_[np.zeros(60, dtype=int), np.ones(240, dtype=int)]
        model = DPLassoClassifier(epsilon=INF, l1_radius=5.0, n_iter=300).fit(X, y)
        assert model.coef_.nnz == 0
        assert model.intercept_[0] == pytest.approx(math.log(4.0), abs=0.02)
        private = DPLassoClassifier(epsilon=5.0, l1_radius=5.0, n_iter=20).fit(X, y)
        # alpha is -90 on the constant and 0 elsewhere: a wrong majority has probability < 1e-9.
        assert private.intercept_[0] > 0
        assert (private.predict(X) == 1).all()

    @pytest.mark.parametrize("factor", [0.25, 4.0])
    @pytest.mark.parametrize("epsilon", [1.0, INF])
    def test_units_do_not_matter(self, factor, epsilon):
        X, y = dense_rows(40, 10, 1), some_labels(40, 1)
        options = {"epsilon": epsilon, "n_iter": 40, "random_state": 5}
        one = DPLassoClassifier(l1_radius=8.0, feature_bound=1.0, **options).fit(X, y)
        other = DPLassoClassifier(l1_radius=8.0 / factor, feature_bound=factor, **options).fit(
            X * np.float32(factor), y
        )
        assert one.transcript_ == other.transcript_
        np.testing.assert_array_equal(
            one.decision_function(X), other.decision_function(X * np.float32(factor))
        )

    def test_entries_beyond_the_bound_are_clipped(self):
        X, y = dense_rows(40, 10, 2, spread=5.0), some_labels(40, 2)
        assert np.abs(X).max() > 2.0
        model = DPLassoClassifier(feature_bound=2.0, **EXACT)
        far = model.fit(X, y).transcript_
        assert far == model.fit(np.clip(X, -2.0, 2.0), y).transcript_
        np.testing.assert_array_equal(
            model.decision_function(X), model.decision_function(np.clip(X, -2.0, 2.0))
        )

    def test_real_data_at_epsilon_1(self, adult):
        X, y = adult
        model = DPLassoClassifier(epsilon=1.0, l1_radius=5.0, n_iter=30, random_state=0).fit(X, y)
        assert roc_auc_score(y, model.decision_function(X)) > 0.7


class TestPaperMechanism:
    @pytest.mark.parametrize("solver", ["sparse", "standard"])
    @pytest.mark.parametrize("selector", ["bucket", "noisy-max"])
    def test_it_warns_and_takes_the_true_sign(self, data, solver, selector):
        X, y = data
        model = DPLassoClassifier(
            epsilon=0.1,
            mechanism="paper",
            solver=solver,
            selector=selector,
            n_iter=15,
            drift_tol=0.0,
            fit_intercept=False,
        )
        with pytest.warns(PrivacyLeakWarning, match="not differentially private") as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__
        assert not model.privacy_.is_private
        assert "NOT differentially private" in model.privacy_.text()
        assert model.work_.operations.shape == (15,)
        assert not hasattr(model, "history_")
        # Along the dense twin's gradients, every sign descends.
        w = np.zeros(6)
        steps = zip(model.transcript_.vertex, model.transcript_.sign, strict=True)
        for step, (j, s) in enumerate(steps, start=1):
            margins = X @ w
            gradient = X.T @ (1 / (1 + np.exp(-margins)) - y)
            assert s * gradient[j] < 1e-6
            w *= 1.0 - 2.0 / (step + 2.0)
            w[j] += 2.0 / (step + 2.0) * s * 10.0

    def test_the_private_mechanism_draws_its_signs(self, data):
        # The same check fails for the exponential mechanism at this epsilon.
        X, y = data
        model = DPLassoClassifier(epsilon=0.1, n_iter=15, l1_radius=10.0, random_state=0).fit(X, y)
        gradient = np.append(X.T @ (0.5 - y), (0.5 - y).sum())
        taken = model.transcript_
        assert (taken.sign[:3] * gradient[taken.vertex[:3]] > 0).any()


def test_progress_is_shown_on_request(data, capsys):
    DPLassoClassifier(verbose=1, n_iter=10, l1_radius=5.0).fit(*data)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "training" in shown.err
    assert "10/10" in shown.err
    DPLassoClassifier().fit(*data)
    assert capsys.readouterr() == ("", "")


def test_seconds_are_handed_out_but_not_kept(data):
    seconds = {}
    model = fit_estimator(DPLassoClassifier(), *data, Hooks(seconds=seconds))
    assert sorted(seconds) == ["prepare", "train"]
    assert all(value >= 0 for value in seconds.values())
    assert not [name for name in vars(model) if "second" in name]
