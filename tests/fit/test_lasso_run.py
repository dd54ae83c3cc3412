"""A LASSO that chooses its own settings: what it draws, releases and pays for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from dplasso import DPLasso, DPLassoClassifier
from dplasso.cluster import InProcessEngine
from dplasso.fit import stages
from dplasso.fit.targets import checked_class_weight
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.gradient_descent.release import Calibration
from dplasso.gradient_descent.slopes import Margins
from dplasso.ledger import create_ledger
from dplasso.losses.logistic import Logistic
from dplasso.privacy.mechanisms import StagedSteps, build_staged
from dplasso.privacy.randomness import random_stream
from estimators.kinds import stored
from fit.cases import fitted, four_classes, records, same_model
from frank_wolfe.cases import dense_rows, some_labels
from frank_wolfe.test_rounds import rows_of, run_of, selector_of


@pytest.fixture(scope="module")
def data():
    return records()


def test_few_columns_are_all_refitted():
    model = fitted(records(60))
    assert model.n_iter_ == 0
    assert model.coef_.nnz == 60
    assert (model.coef_standard_error_ > 0).all()


def test_every_column_is_drawn_once(data):
    model = fitted(data, n_iter=200)
    assert np.unique(model.transcript_.vertex).size == model.n_iter_ == 200


def test_it_finds_what_tells_the_label_and_refits_it(data):
    model = fitted(data, n_iter=15)
    assert set(range(10)) <= set(model.coef_.indices.tolist())
    assert model.coef_.toarray()[0, :10].mean() > 1.3 * model.coef_standard_error_.max()
    assert model.score(*records(seed=4)) > 0.8
    assert abs(model.n_records_ - 700) < 100


def fits(observed, expected):
    """Compare counts with what is expected of them, rare ones together."""
    common = expected > 5
    told = [np.append(counts[common], counts[~common].sum()) for counts in (observed, expected)]
    kept = told[1] > 0
    assert chisquare(told[0][kept], told[1][kept], sum_check=False).pvalue > 1e-6


def test_draws_are_from_the_exponential_mechanism_over_the_rest():
    """The second of two draws, by its probability given the first: 4,000 runs, false alarm 1e-6.

    Drawing the first one's column again, or by its gradient before the step, fails at once.
    """
    X, y = dense_rows(40, 6, 0), some_labels(40, 0)
    runs, scale = 4000, 0.35
    steps = RoundSteps(Logistic(1.0, 0.4), 1.0, 6, 2, 1.0, 32)
    alpha = rows_of(X, y, steps).start() * scale / 2**32
    first, second = np.zeros(12), {}
    stream = random_stream(1)
    for _ in range(runs):
        selector = selector_of(steps, exponent=scale / 2**32)
        run = run_of(steps, rows_of(X, y, steps), selector, stream)
        run.advance(1, 1)
        run.advance(2, 2)
        drawn = run.transcript()
        key = int(drawn.vertex[0]), int(drawn.sign[0])
        first[2 * key[0] + (key[1] > 0)] += 1
        second.setdefault(key, np.zeros(12))
        second[key][2 * int(drawn.vertex[1]) + (int(drawn.sign[1]) > 0)] += 1

    def probabilities(alpha, without=None):
        weights = np.exp(np.column_stack([alpha, -alpha])).ravel()
        if without is not None:
            weights[2 * without : 2 * without + 2] = 0.0
        return weights / weights.sum()

    fits(first, runs * probabilities(alpha))
    key = max(second, key=lambda one: second[one].sum())
    # The gradients after that step, from the definition.
    margin = 0.4 + key[1] * np.clip(X[:, key[0]], -1, 1)
    q = 1 / (1 + np.exp(-margin)) - y
    after = scale * (q @ np.clip(X, -1, 1))
    assert second[key][2 * key[0] : 2 * key[0] + 2].sum() == 0
    fits(second[key], second[key].sum() * probabilities(after, key[0]))


@pytest.mark.parametrize("l1_radius", ["auto", 3.0])
def test_a_person_s_rows_count_together(data, l1_radius):
    one, two = (
        DPLassoClassifier(5.0, rows_per_person=rows, n_iter=5, l1_radius=l1_radius).fit(*data)
        for rows in (1, 2)
    )
    assert (one.privacy_.sensitivity, two.privacy_.sensitivity) == (0.5, 1.0)
    assert "each person, with up to 2 rows" in two.privacy_.text()


def test_class_weights_by_name(data):
    named = fitted(data, classes=["no", "yes"], class_weight={"yes": 4.0, "no": 2.0})
    same_model(named, fitted(data, class_weight=[0.5, 1.0]))
    # Whoever counts for more is found more often.
    plain, weighted = (
        fitted(data, n_iter=15, class_weight=weight).predict(data[0]) for weight in (None, [1, 9])
    )
    assert (weighted == "yes").sum() > (plain == "yes").sum()


def test_a_release_with_the_parts_of_another_is_refused(data):
    one, other = (fitted(data, n_iter=n).model_.release for n in (5, 6))
    with pytest.raises(ValueError, match="not those of its vertices"):
        replace(one, weights=other.weights)


def test_a_statement_tells_of_counts_only_where_there_are_any(data):
    X, y = data
    public = {"n_records": 700, "n_iter": 5}
    for model, labels, words in (
        (DPLassoClassifier(**public), y, "noisy counts of the two classes, then at most 105 steps"),
        (DPLassoClassifier(fit_intercept=False, **public), y, "at most 105 steps"),
        (DPLasso(target_bounds=(0, 1)), y == "yes", "noisy counts at both ends of the interval of"),
    ):
        told = model.fit(X, labels).privacy_
        assert f"How: {words}" in told.text()
        assert told.counted == words.startswith("noisy")


def test_counts_are_noisy(data):
    """Thirty draws of a standard deviation far beyond 1: one that is exact is no chance."""
    X, y = data
    exact = [(y == "no").sum(), (y == "yes").sum()]
    counts = np.array(
        [DPLassoClassifier(1.0, n_iter=2).fit(X, y).model_.release.counts for _ in range(15)]
    )
    mechanism = build_staged(epsilon=1.0, delta=1e-6, n_vertices=2, n_gradients=100)
    deviation = mechanism.count_sensitivity / mechanism.count_mu
    assert deviation > 30
    assert not (counts == exact).any()
    # Of 30 draws, by more than five standard deviations: false alarm 1e-5.
    assert (np.abs(counts - exact) < 5.5 * deviation).all()
    assert counts.std(axis=0).min() > deviation / 3


def test_no_class_weighs_more_than_one():
    assert checked_class_weight([2.0, 5.0], None) == (0.4, 1.0)
    assert checked_class_weight({"a": 8, "b": 2}, ["a", "b"]) == (1.0, 0.25)


def test_with_a_ledger_few_steps_cost_what_the_ledger_adds_up(data, tmp_path):
    create_ledger(tmp_path / "l.ledger", 5.0, 1e-5)
    asked = {"n_iter": 2, "l1_radius": 3.0, "delta": 1e-6}
    asked |= {"n_records": 60, "fit_intercept": False}
    alone = DPLassoClassifier(0.9, **asked).fit(*data)
    paid = DPLassoClassifier(0.9, ledger=tmp_path / "l.ledger", **asked).fit(*data)
    assert alone.privacy_.eps0 == pytest.approx(0.45, rel=1e-5)
    assert paid.privacy_.eps0 < alone.privacy_.eps0


GIVEN = {"n_iter": 30, "l1_radius": 9.0}


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"n_records": 70}])
def test_vertices_that_are_given_pay_for_the_counts(data, options, monkeypatch):
    paid, vertices = [], StagedSteps.vertices

    def spent(*given):
        paid.append(vertices(*given))
        return paid[-1]

    monkeypatch.setattr(StagedSteps, "vertices", spent)
    model = fitted(data, random_state=None, **GIVEN, **options)
    stated = model.privacy_
    assert stated.mechanism == "exponential and gaussian"
    assert stated.steps == model.n_iter_ == 30
    assert paid[-1].rho == pytest.approx(0.99 * stated.rho, rel=1e-9)
    assert stated.eps0 == paid[-1].eps0
    assert "noisy counts of the two classes, then 30 steps" in stated.text()
    assert not (model.transcript_.vertex >= data[0].shape[1]).any()


def test_the_level_of_given_vertices_follows_from_the_counts(data, monkeypatch):
    levels = []
    for counts in ([30.0, 40.0], [30.0, 90.0]):
        monkeypatch.setattr(
            stages, "noisy_counts", lambda *_, counts=counts, **__: np.array(counts)
        )
        levels.append(float(fitted(data, **GIVEN).intercept_[0]))
    assert 0.0 < levels[0] < levels[1]


def test_without_intercept_and_with_n_given_nothing_is_counted(data):
    model = fitted(data, **GIVEN, fit_intercept=False, n_records=data[1].size)
    assert model.privacy_.mechanism == "exponential"
    assert model.intercept_ == 0.0


@pytest.mark.parametrize("options", [{}, {"refit": None}, {"refit": 0.4}, {"n_iter": 3}])
def test_vertices_and_what_follows_share_the_budget(data, options, monkeypatch):
    shares = []
    for part in ("vertices", "gradients"):
        original = getattr(StagedSteps, part)

        def spent(*given, original=original):
            shares.append(given[-1])
            return original(*given)

        monkeypatch.setattr(StagedSteps, part, spent)
    fitted(data, **options)
    assert len(shares) == 2
    assert sum(shares) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("classes", ["two", "four"])
def test_margins_are_set_right_that_are_predicted(monkeypatch, tmp_path, classes):
    """Entries beyond the bound are clipped there too: in memory, stores and partitions."""
    X, y = four_classes() if classes == "four" else records()
    # Two kinds of entries: equal ones have no values of their own.
    X.data[::2] *= 1e6
    seen = []

    def sums(self, parameters, unit):
        seen.append(self.parts[:, 0])
        return np.zeros(parameters.size, dtype=np.int64)

    def unchanged(margins, *_, **__):
        margins.sums(np.zeros(2), 1.0)
        return Calibration(1.0, (0.0,) * (4 if classes == "four" else 1))

    monkeypatch.setattr(Margins, "sums", sums)
    monkeypatch.setattr(stages, "calibrate_margins", unchanged)
    options = {"n_iter": 20, "refit": None, "feature_bound": 0.5, "random_state": 7}
    cut = [X[:100], X[100:]], [y[:100], y[100:]]
    forms = [((X, y), {}), ((stored(X, y, tmp_path / "s"),), {})]
    # Partitions are of two classes.
    forms += [(cut, {"engine": InProcessEngine()})] if classes == "two" else []
    for form, engine in forms:
        model = DPLassoClassifier(20.0, **options).fit(*form, **engine)
        margins = np.concatenate(seen)
        seen.clear()
        np.testing.assert_allclose(
            margins, model.decision_function(X).reshape(margins.shape), rtol=1e-6, atol=1e-6
        )
