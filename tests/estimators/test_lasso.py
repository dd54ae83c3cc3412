"""Frank-Wolfe and the LASSO: vertices, the models they make, and the mechanism of the paper."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPFrankWolfeClassifier, PrivacyLeakWarning
from estimators.kinds import each_classifier, few, make, numbers
from fit.cases import four_classes

INF = float("inf")
EXACT = {"epsilon": INF, "l1_radius": 2.0, "n_iter": 30, "drift_tol": 0.0}


@pytest.fixture(scope="module")
def data():
    """Rows of six features of which the first two decide the label."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 6)) < 0.5, rng.uniform(-1, 1, (1000, 6)), 0.0)
    y = (X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=1000) > 0).astype(int)
    return sp.csr_array(X.astype(np.float32)), y


@pytest.mark.parametrize("kind", ["lasso", "frank-wolfe"])
def test_without_intercept_a_margin_of_zero_is_the_first_class(data, kind):
    model = make(kind, fit_intercept=False).fit(*data)
    np.testing.assert_array_equal(model.intercept_, [0.0])
    nothing = np.zeros((1, 6))
    assert model.predict(nothing) == [0]
    np.testing.assert_array_equal(model.predict_proba(nothing), [[0.5, 0.5]])


@each_classifier
class TestClasses:
    def test_the_declared_order_is_kept(self, kind):
        X, y = few()
        one, other = (make(kind, INF, classes=c).fit(X, y) for c in (("no", "yes"), ("yes", "no")))
        assert one.classes_.tolist() == ["no", "yes"]
        assert other.classes_.tolist() == ["yes", "no"]
        # Taken the other way round, everything but the labels changes sign.
        np.testing.assert_array_equal(numbers(one), -numbers(other))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))

    @pytest.mark.parametrize("present", ["no", "yes"])
    def test_one_label_is_enough_where_both_are_declared(self, kind, present):
        X, y = few()
        model = make(kind, INF, classes=("no", "yes")).fit(X, np.full_like(y, present))
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.privacy_.classes == "declared"
        # Rows without entries included.
        assert (model.predict(X) == present).all()


class TestLearning:
    def test_more_epsilon_learns_what_no_privacy_learns(self, data):
        X, y = data
        options = {"n_iter": 10, "l1_radius": 2.0, "random_state": 0}
        tiny, one, large, plain = (
            DPFrankWolfeClassifier(epsilon, **options).fit(X, y).score(X, y)
            for epsilon in (0.01, 1.0, 1000.0, INF)
        )
        assert plain > 0.84
        assert tiny < 0.7 < one
        assert large == pytest.approx(plain, abs=0.01)

    @pytest.mark.parametrize("factor", [0.25, 4.0])
    @pytest.mark.parametrize("epsilon", [1.0, INF])
    def test_units_do_not_matter(self, data, factor, epsilon):
        (X, y), wide = data, data[0] * np.float32(factor)
        options = {"epsilon": epsilon, "n_iter": 40, "random_state": 5}
        one = DPFrankWolfeClassifier(l1_radius=8.0, **options).fit(X, y)
        options |= {"l1_radius": 8.0 / factor, "feature_bound": factor}
        other = DPFrankWolfeClassifier(**options).fit(wide, y)
        assert one.transcript_ == other.transcript_
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(wide))

    def test_entries_beyond_the_bound_are_clipped(self, data):
        (X, y), model = data, DPFrankWolfeClassifier(feature_bound=0.25, **EXACT)
        clipped = X.copy()
        clipped.data = np.clip(X.data, -0.25, 0.25)
        far = model.fit(X, y).transcript_
        assert far == model.fit(clipped, y).transcript_
        np.testing.assert_array_equal(model.decision_function(X), model.decision_function(clipped))


class TestPaperMechanism:
    def test_it_warns_and_takes_the_true_sign(self, data):
        X, y = data
        options = {"n_iter": 15, "drift_tol": 0.0, "fit_intercept": False}
        model = DPFrankWolfeClassifier(0.1, mechanism="paper", **options)
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
            gradient = X.T @ (1 / (1 + np.exp(-(X @ w))) - y)
            assert s * gradient[j] < 1e-6
            w *= 1.0 - 2.0 / (step + 2.0)
            w[j] += 2.0 / (step + 2.0) * s * 10.0

    def test_it_is_for_two_classes(self):
        with pytest.raises(ValueError, match="mechanism='paper' is for two classes; there are 4"):
            DPFrankWolfeClassifier(mechanism="paper").fit(*four_classes())
