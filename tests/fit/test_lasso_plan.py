"""The settings that a LASSO chooses: public facts in, public numbers out."""

import math

import numpy as np
import pytest

from dplasso import DPLassoClassifier, privacy_cost, weakest_association
from dplasso.fit import column_plan
from dplasso.fit.column_plan import Shape, plan_lasso
from dplasso.fit.task import Binary
from dplasso.privacy.budget import Draws, build_budget

TASK = Binary(np.arange(2))


def shape(n_features, asked=None, *, from_prior=False):
    return Shape(TASK, n_features, asked, 1.0, from_prior)


def rho_of(epsilon):
    draws = Draws(gaussian=1e7, vertices=200)
    return 0.99 * build_budget(draws, epsilon=epsilon, delta=1e-6, n_iter=300).mu ** 2 / 2.0


def plan(n_features, n_records, epsilon=1.0, asked=None, *, long_rows=True, **options):
    public = shape(n_features, asked, **options)
    return plan_lasso(public, rho_of(epsilon), n_records, long_rows=long_rows)


def kept(*args, **options):
    return plan(*args, long_rows=False, **options).n_kept


def test_few_columns_are_all_taken_and_of_somewhat_more_at_most_half_are_drawn():
    found = plan(200, 10_000)
    assert (found.n_vertices, found.n_kept, found.refit_share) == (0, 0, 1.0)
    assert plan(30, 10_000, asked=50).n_vertices == 0
    for n_features in (201, 300, 399):
        assert plan(n_features, 10**6).n_vertices == n_features // 2
        assert plan(n_features, 10**6, asked=150).n_vertices <= n_features // 2
        assert kept(n_features, 10**6) == 200


def test_the_number_of_columns_grows_with_the_budget_and_the_records():
    by_epsilon = [plan(10**5, 10_000, epsilon).n_vertices for epsilon in (0.1, 0.3, 0.5, 0.7)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] < by_epsilon[-1]
    by_records = [plan(10**5, n).n_vertices for n in (1_000, 5_000, 10_000)]
    assert by_records == sorted(by_records)
    assert plan(10**5, 10_000).n_vertices >= plan(10**7, 10_000).n_vertices
    for long_rows in (False, True):
        assert plan(10**6, 10, math.inf, long_rows=long_rows).n_vertices == 200


def test_where_noise_leaves_few_columns_all_of_the_budget_finds_them():
    found = plan(10**5, 2_000, 0.3)
    assert found.refit_share == 0.0
    assert 1 <= found.n_vertices < 12
    assert found.calibration_share > 0.0
    # Corrections of a public model are refitted, however few they are.
    assert plan(10**5, 2_000, 0.3, from_prior=True).refit_share > 0.0


def test_what_is_asked_for_is_drawn_and_every_column_weighs_the_same():
    found = plan(10**5, 50_000, asked=30)
    assert (found.n_vertices, found.n_kept, found.refit_share) == (30, 0, 0.3)
    # Every column weighs 0.8 / sqrt(T): radius times 2 / (t0 + T).
    assert found.l1_radius * 2 / (30 + column_plan.LATE_START) == pytest.approx(0.8 / math.sqrt(30))


def test_gradients_keep_200_columns_and_more_where_records_and_budget_suffice():
    by_epsilon = [kept(10**5, 50_000, one) for one in (0.03, 0.1, 1.0, 3.0)]
    assert by_epsilon[:2] == [200, 200]
    assert 200 < by_epsilon[2] < by_epsilon[3] < 1000
    by_records = [kept(10**5, n) for n in (1_000, 50_000, 10**6, 10**9)]
    assert by_records == sorted(by_records)
    assert (by_records[0], by_records[-1]) == (200, 50_000)
    assert kept(10**6, 10**9) == 2**16
    assert kept(10**5, 10**6, asked=30) == 30
    # More columns than a weight for each fits in memory.
    assert kept(2**25, 10**6) == 0
    assert plan(2**25, 10**6, long_rows=False).n_vertices == 200


def bent(found, n_records, epsilon):
    return 0.25 * n_records * math.sqrt(2.0 * rho_of(epsilon) * found.refit_share) / 0.5


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("n_features", "asked"), [(10**5, None), (500, None), (10**5, 30)])
def test_stages_share_the_budget_of_the_gradients(n_features, asked, mixed):
    public = Shape(TASK, n_features, asked, 1.0, from_prior=False, mixes=mixed)
    for n_records, long_rows in ((2_000, True), (2_000, False), (10**6, False)):
        found = plan_lasso(public, rho_of(1.0), n_records, long_rows=long_rows)
        told = bent(found, n_records, 1.0)
        stages = found.stages(public, n_features, told, mixed=mixed)
        runs = [stage for stage in stages if stage is not None]
        assert len(runs) == 1 if found.n_vertices else len(runs) >= 2
        assert sum(stage.share for stage in runs) == pytest.approx(1.0, abs=1e-12)
        assert runs[-1].n_columns == found.n_kept or found.n_vertices
        for stage, (n_steps, n_columns) in zip(stages, public.stages, strict=True):
            assert stage is None or stage.n_steps <= n_steps
            assert stage is None or found.n_vertices or stage.n_columns <= n_columns


def test_few_records_are_refitted_in_fewer_steps():
    """Of 55 steps the AUC of synthetic records is that of 100; of 40 it is not at 20,000 rows."""
    steps, public = [], shape(10**5, 50)

    def last(n_records, epsilon):
        found = plan(10**5, n_records, epsilon, asked=50, from_prior=True)
        told = bent(found, n_records, epsilon) if math.isfinite(epsilon) else math.inf
        return found.stages(public, 50, told, mixed=False)[-1].n_steps

    steps = [last(n_records, 1.0) for n_records in (1_000, 20_000, 10**6)]
    assert steps == [40, 58, 100]
    assert last(1_000, math.inf) == 100


class TestWeakestAssociation:
    def test_more_records_and_more_budget_find_less(self):
        parts = [weakest_association(1.0, 1e-6, n, 10**5).part for n in (1_000, 10_000, 10**6)]
        assert parts == sorted(parts, reverse=True)
        parts = [
            weakest_association(e, 1e-6, 10**4, 10**5, method="lasso").part for e in (0.1, 0.5, 3.0)
        ]
        assert parts == sorted(parts, reverse=True)

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
        """Of 30 columns of twice this strength nearly all are drawn, of a quarter nearly none.

        The chance that a column at the limit is missed is about that of the largest of 2D noises
        to be above its middle, 1/2; at twice the limit it is below 1 %, seeds aside.
        """
        rng = np.random.default_rng(5)
        n, d, planted = 4_000, 3_000, 5
        monkeypatch.setattr(column_plan, "_LONGER_ROWS", 1e-3)
        asked = {"method": "lasso", "max_weights": planted}
        limit = weakest_association(3.0, 1e-6, n, d, **asked).rows
        y = np.arange(n) % 2
        hits = {}
        for factor in (2.0, 0.25):
            found, excess = 0, round(factor * limit / 2)
            for seed in range(6):
                X = (rng.random((n, d)) < 0.001).astype(np.float32)
                X[:, :planted] = 0
                # Each has rows of its own, so many more of one class, and no chance in it.
                for k in range(planted):
                    for label in (0, 1):
                        rows = np.flatnonzero((y == label) & (np.arange(n) // 2 % planted == k))
                        X[rows[: 200 + (2 * label - 1) * excess], k] = 1
                model = DPLassoClassifier(3.0, max_weights=planted, random_state=seed).fit(X, y)
                found += int((model.transcript_.vertex < planted).sum())
            hits[factor] = found / (6 * planted)
        assert hits[2.0] > 0.9
        assert hits[0.25] < 0.3

    def test_gradient_descent_depends_on_the_length_of_rows(self):
        short, long = (
            weakest_association(1.0, 1e-6, 10**4, 10**5, row_entries=r) for r in (1, 100)
        )
        assert long.rows == pytest.approx(10 * short.rows)
