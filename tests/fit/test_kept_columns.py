"""A LASSO whose columns are kept by noisy gradients: which, how many, and by what it may know."""

import numpy as np
import pytest

from dplasso import DPLasso, DPLassoClassifier, NoiseWarning, load
from dplasso.cluster import InProcessEngine
from dplasso.estimators.fitting import method_of
from dplasso.fit import column_plan, stages
from dplasso.fit.column_plan import SCREENING_STEPS, columns_to_be_found
from dplasso.privacy.mechanisms import StagedSteps
from fit.cases import fitted, four_classes, other_forms, records, same_model


@pytest.fixture(autouse=True)
def short_rows(monkeypatch):
    """Gradients are worth their noise for fewer records than by default."""
    monkeypatch.setattr(column_plan, "_LONGEST_ROWS", 1.0)


@pytest.fixture(scope="module")
def data():
    return records()


def test_it_finds_what_tells_the_label(data):
    model = fitted(data)
    assert model.n_iter_ == 0
    release = model.model_.release
    assert set(range(10)) <= set(release.columns.tolist())
    assert model.coef_.nnz == release.columns.size < 450
    assert model.score(*records(seed=4)) > 0.8
    assert (model.coef_standard_error_ > 0).all()


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_their_number_follows_from_the_released_counts(data, factor, monkeypatch):
    """Whatever the records are: the exact N is not asked for."""
    kept, counted = [], np.array([300.0, 400.0]) * factor
    monkeypatch.setattr(stages, "noisy_counts", lambda *_: counted.copy())
    for rows in (700, 640):
        model = fitted((data[0][:rows], data[1][:rows]))
        kept.append(model.model_.release.columns.size)
    spent = method_of(model).mechanism(*_known(model))
    rho = spent.rho_left * 0.7
    assert kept == 2 * [columns_to_be_found(rho, 700 * factor, 900)]


def _known(model):
    task = method_of(model).targets.of_size(2)
    return task, 1, model.n_features_in_


def test_the_most_is_known_before_anything_is_spent(monkeypatch, data, tmp_path):
    monkeypatch.setattr(column_plan, "MOST_KEPT", 30)
    model = fitted(data)
    mechanism = method_of(model).mechanism(*_known(model))
    assert mechanism.n_columns == 200
    assert mechanism.most_kept == model.coef_.nnz == 30
    assert mechanism.n_iter == 200 + SCREENING_STEPS + 100 == model.privacy_.steps
    model.save(tmp_path / "m.npz")
    most = method_of(model).model_bytes(mechanism, 900, model.classes_)
    assert (tmp_path / "m.npz").stat().st_size <= most


@pytest.mark.parametrize("options", [{"n_iter": 20}, {"refit": None}, {"l1_radius": 5.0}])
def test_what_is_asked_for_is_drawn(data, options):
    assert fitted(data, **options).n_iter_ > 0


@pytest.mark.parametrize("options", [{}, {"refit": 0.6}, {"fit_intercept": False}])
def test_gradients_have_all_of_the_budget(data, options, monkeypatch):
    shares = []
    original = StagedSteps.gradients

    def spent(self, share):
        shares.append(share)
        return original(self, share)

    monkeypatch.setattr(StagedSteps, "gradients", spent)
    monkeypatch.setattr(StagedSteps, "vertices", None)
    fitted(data, **options)
    assert shares == [1.0]


def test_every_form_of_the_records_gives_the_same_model(data, tmp_path):
    whole = fitted(data)
    for X, y in other_forms(*data, tmp_path / "s"):
        same_model(fitted((X, y)), whole)
    X, y = data
    parts = [X[:100], X[100:]], [y[:100], y[100:]]
    model = DPLassoClassifier(20.0, random_state=7).fit(*parts, engine=InProcessEngine())
    same_model(model, whole)


def test_a_file_holds_it(data, tmp_path):
    model = fitted(data)
    model.save(tmp_path / "m.npz")
    read = load(tmp_path / "m.npz")
    same_model(read, model)
    X = data[0]
    np.testing.assert_array_equal(read.decision_function(X), model.decision_function(X))


def test_numbers(data):
    X, y = data
    target = (y == "yes") * 2.0 - 1.0
    model = DPLasso(20.0, target_bounds=(-1, 1), random_state=0).fit(X, target)
    assert set(range(10)) <= set(model.model_.release.columns.tolist())
    assert model.n_iter_ == 0


class TestNoise:
    """Whoever can find nothing is told, before more is spent than a count."""

    @pytest.fixture(autouse=True)
    def long_rows(self, monkeypatch, short_rows):
        monkeypatch.setattr(column_plan, "_LONGEST_ROWS", 1e6)

    @pytest.mark.parametrize("options", [{}, {"n_iter": 100}, {"refit": None}])
    def test_a_fit_that_can_find_nothing_says_so(self, data, options):
        with pytest.warns(NoiseWarning, match="columns can be told from noise"):
            fitted(data, epsilon=0.5, **options)

    def test_a_fit_that_can_find_some_does_not(self, data, recwarn):
        fitted(data)
        fitted(data, n_iter=3, epsilon=2.0)
        # All columns are taken, or half of them.
        fitted(records(60), epsilon=0.5)
        fitted(records(300), epsilon=0.5)
        assert not [one for one in recwarn if one.category is NoiseWarning]

    def test_several_classes_need_more_records(self, recwarn):
        fitted(four_classes(), epsilon=20.0)
        with pytest.warns(NoiseWarning):
            fitted(four_classes(), epsilon=4.0)

    def test_it_comes_before_the_charge_where_the_number_of_records_is_public(
        self, data, monkeypatch
    ):
        monkeypatch.setattr(stages.StagedLasso, "begin", None)
        with pytest.warns(NoiseWarning), pytest.raises(TypeError):
            fitted(data, epsilon=0.5, n_records=700)

    def test_the_count_it_tells_is_the_released_one(self, data, monkeypatch):
        monkeypatch.setattr(stages, "noisy_counts", lambda *_: np.array([100.0, 23.0]))
        with pytest.warns(NoiseWarning, match="^with 123 records, 900 columns and epsilon=0.5, "):
            fitted(data, epsilon=0.5)
