"""A LASSO that chooses its own settings: its plan, what it draws or keeps, refits and finds."""

import math

import numpy as np
import pytest

from dplasso import DPLasso, DPLassoClassifier, privacy_cost, weakest_association
from dplasso.fit import lasso
from dplasso.phases import count
from fit.cases import fitted, records, releases


@pytest.fixture(scope="module")
def data():
    return records()


@pytest.fixture
def drawing(monkeypatch):
    """All rows are long, and no records are a table."""
    monkeypatch.setattr(lasso, "_LONGER_ROWS", 1e-3)
    monkeypatch.setattr(lasso, "TABLE_COLUMNS", 0)


def kept_columns(model):
    return releases(model).get("cut-columns", np.zeros(0)).tolist()


@pytest.mark.usefixtures("drawing")
def test_it_draws_what_tells_the_label_and_refits_it(data):
    model = fitted(data, max_weights=15)
    assert set(range(10)) <= set(model.coef_.indices.tolist())
    assert model.coef_.toarray()[0, :10].mean() > 1.3 * model.coef_standard_error_.max()
    assert model.score(*records(seed=4)) > 0.8
    assert abs(model.n_records_ - 700) < 100
    # Every column weighs 0.8 / sqrt(T): radius times 2 / (t0 + T).
    held = releases(model)
    radius, late_start = held["vertices-radius"], held["vertices-late_start"]
    assert radius * 2 / (15 + late_start) == pytest.approx(0.8 / math.sqrt(15))


def test_it_keeps_what_tells_the_label(data):
    model = fitted(data)
    kept = kept_columns(model)
    assert set(range(10)) <= set(kept)
    assert model.coef_.nnz == len(kept) < 450
    assert model.score(*records(seed=4)) > 0.8
    assert (model.coef_standard_error_ > 0).all()
    numbers = DPLasso(20.0, target_bounds=(-1, 1), random_state=0)
    numbers.fit(data[0], (data[1] == "yes") * 2.0 - 1.0)
    assert set(range(10)) <= set(kept_columns(numbers))


@pytest.mark.parametrize("total", [350.0, 1400.0])
def test_how_many_are_kept_follows_from_the_released_counts(data, total, monkeypatch):
    """Whatever the records are: the exact N is not asked for."""
    monkeypatch.setattr(lasso, "MOST_COLUMNS", 10)
    monkeypatch.setattr(count, "noisy_counts", lambda *_: np.array([0.4, 0.6]) * total)
    some = [(data[0][:rows], data[1][:rows]) for rows in (700, 640)]
    kept, same = (len(kept_columns(fitted(one))) for one in some)
    assert kept == same
    assert 20 < kept < 60 if total < 700.0 else 100 < kept < 250


def test_no_more_are_kept_than_is_known_before_anything_is_spent(monkeypatch, data):
    monkeypatch.setattr(lasso, "MOST_COLUMNS", 5)
    monkeypatch.setattr(lasso, "MOST_KEPT", 30)
    model = fitted(data)
    assert len(kept_columns(model)) == model.coef_.nnz == 30


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_rows_are_drawn_from_where_most_of_them_are_long(share):
    """Of 3,000 columns, rows of 5 entries, and some of 2,000: in those draws tell more."""
    rng = np.random.default_rng(1)
    X = rng.random((2_000, 3_000), dtype=np.float32)
    X = (np.where(rng.random(2_000) < share, 0.7, 5 / 3_000)[:, None] > X).astype(np.float32)
    model = DPLassoClassifier(1.0, classes=[0, 1], random_state=0).fit(X, rng.integers(0, 2, 2_000))
    assert hasattr(model, "transcript_") == (share > 0.5)
    # Short rows are far below the limit, and long ones beyond twice that. Noise has .01.
    assert releases(model)["rows-part"] == pytest.approx(share, abs=0.06)
    assert "lengths of rows" in model.privacy_.find("rows").words


def planned(n_features, n_records, epsilon=1.0, *, long_rows=True, **asked):
    """Return how many columns a fit chooses: it draws them if rows are long."""
    known = {"method": "lasso", "row_entries": 1e6 if long_rows else 1.0} | asked
    return weakest_association(epsilon, 1e-6, n_records, n_features, **known).n_weights


def test_few_columns_are_all_taken_and_of_somewhat_more_at_most_half_are_drawn():
    assert planned(200, 10_000) == 200
    assert planned(30, 10_000, max_weights=50) == 30
    # Tables are never drawn.
    assert planned(300, 10**6) == 200
    assert planned(300, 10**6, max_weights=150) == 150
    for n_features in (301, 399):
        assert planned(n_features, 10**6) == n_features // 2
        assert planned(n_features, 10**6, max_weights=150) <= n_features // 2
        assert planned(n_features, 10**6, long_rows=False) == 200


def test_the_number_of_columns_grows_with_the_budget_and_the_records():
    by_epsilon = [planned(10**5, 10_000, epsilon) for epsilon in (0.1, 0.3, 0.5, 0.7)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] < by_epsilon[-1]
    by_records = [planned(10**5, n) for n in (1_000, 5_000, 10_000)]
    assert by_records == sorted(by_records)
    assert planned(10**5, 10_000) >= planned(10**7, 10_000)
    assert 1 <= planned(10**5, 2_000, 0.3) < 12
    assert planned(10**5, 50_000, max_weights=30) == 30


def test_gradients_keep_200_columns_and_more_where_records_and_budget_suffice():
    short = {"long_rows": False}
    by_epsilon = [planned(10**5, 50_000, one, **short) for one in (0.03, 0.1, 1.0, 3.0)]
    assert by_epsilon[:2] == [200, 200]
    assert 200 < by_epsilon[2] < by_epsilon[3] < 1000
    by_records = [planned(10**5, n, **short) for n in (1_000, 50_000, 10**6, 10**9)]
    assert by_records == sorted(by_records)
    assert (by_records[0], by_records[-1]) == (200, 50_000)
    assert planned(10**6, 10**9, **short) == 2**16
    assert planned(10**5, 10**6, max_weights=30, **short) == 30
    # More columns than a weight for each fits in memory.
    assert planned(2**25, 10**6, **short) == 200


class TestWeakestAssociation:
    def test_is_the_noise_of_the_draws(self):
        asked = {"method": "lasso", "max_weights": 30, "row_entries": 1e5}
        found = weakest_association(1.0, 1e-6, 50_000, 10**5, **asked)
        cost = privacy_cost(1.0, 1e-6, n_features=10**5, method="lasso", max_weights=30)
        # A share of 0.3 is left for the refit, and a hundredth pays for the counts.
        eps0 = 2.0 * cost.mu * math.sqrt(0.99 * 0.7 / 30)
        moved = cost.find("vertices").numbers["sensitivity"]
        assert found.n_weights == 30
        assert found.gradient == pytest.approx(2.0 * moved / eps0 * math.log(2e5))
        # A row that speaks for the column gives 1/2.
        assert found.rows == pytest.approx(2 * found.gradient)
        assert found.part == pytest.approx(found.rows / 50_000)

    def test_a_planted_column_of_that_strength_is_drawn(self, monkeypatch):
        """Of 15 columns of twice this strength nearly all are drawn, of a quarter nearly none.

        The chance that a column at the limit is missed is about that of the largest of 2D noises
        to be above its middle, 1/2; at twice the limit it is below 1 %, seeds aside.
        """
        rng = np.random.default_rng(5)
        n, d, planted = 4_000, 3_000, 5
        monkeypatch.setattr(lasso, "_LONGER_ROWS", 1e-3)
        asked = {"method": "lasso", "max_weights": planted}
        limit = weakest_association(3.0, 1e-6, n, d, **asked).rows
        y = np.arange(n) % 2
        hits = {}
        for factor in (2.0, 0.25):
            found, excess = 0, round(factor * limit / 2)
            for seed in range(3):
                X = (rng.random((n, d)) < 0.001).astype(np.float32)
                X[:, :planted] = 0
                # Each has rows of its own, so many more of one class, and no chance in it.
                for k in range(planted):
                    for label in (0, 1):
                        rows = np.flatnonzero((y == label) & (np.arange(n) // 2 % planted == k))
                        X[rows[: 200 + (2 * label - 1) * excess], k] = 1
                model = DPLassoClassifier(3.0, max_weights=planted, random_state=seed).fit(X, y)
                found += int((model.transcript_.vertex < planted).sum())
            hits[factor] = found / (3 * planted)
        assert hits[2.0] > 0.9
        assert hits[0.25] < 0.3
