"""Bad input: one clear sentence that names what is wrong, before any training."""

import math

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from dplasso import DataError, DPLassoClassifier
from dplasso.fit import run as fitting

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).random((20, 3))
Y = np.arange(20) % 2


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    """Fail if anything is computed from the data."""

    def trained(*args, **kwargs):
        pytest.fail("training has started")

    monkeypatch.setattr(fitting, "run_in_chunks", trained)


def refusal(parameters=None, X=X, y=Y):
    """Return the error of a fit, one sentence."""
    with pytest.raises((ValueError, TypeError)) as caught:
        DPLassoClassifier(**parameters or {}).fit(X, y)
    return caught.value


def test_the_guard_works():
    with pytest.raises(pytest.fail.Exception, match="training has started"):
        DPLassoClassifier().fit(X, Y)


BAD = {
    "epsilon": [0, -1, NAN, -INF, "1", None, True, 1j, [1.0]],
    "delta": [0, 1, 2, -1e-6, NAN, INF, "x", None],
    "l1_radius": [0, -1.0, NAN, INF, "5", None],
    "n_iter": [0, -3, 2.5, 2**31, INF, NAN, "10", None, True],
    "feature_bound": [0, -1, NAN, INF, 1e-200, 1e200, "1", None],
    "neighbors": ["both", "", None, 3],
    "mechanism": ["laplace", "none", None, 1],
    "solver": ["newton", None, 2],
    "selector": ["best", None, 2],
    "drift_tol": [-1, -1e-9, NAN, INF, "x", [0.1]],
    "random_state": ["x", -1, 1.5, True],
    "n_jobs": [0, 1.5, "x"],
    "refit": [1.0, -0.1, "x", NAN],
    "residual_bound": [0.4, 1.1, NAN, "x"],
    "n_records": [0, 1.5, "x"],
    "rows_per_person": [0, 1.5, "x"],
    "weight_bound": [0, -1.0, NAN, INF, "x"],
    "class_weight": ["balanced", {0: 1.0}, (1.0,), (1.0, -1.0), 5],
    "ledger": [5, True, b"x", ""],
    "dataset": [5, "", "two\nlines", "x" * 201],
    "purpose": [5, "", "two\nlines", "x" * 201],
    "classes": ["ab", (0,), (1, 1), 7],
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{n}={v!r}" for n, v in CASES])
@pytest.mark.parametrize("others", [{}, {"epsilon": INF}, {"solver": "standard"}])
def test_a_bad_parameter_is_named(name, value, others):
    message = str(refusal(others | {name: value}))
    assert name in message
    assert "\n" not in message
    assert repr(value) in message or str(value) in message


def test_every_parameter_with_wrong_values_is_covered():
    free = {"fit_intercept", "verbose"}
    assert set(BAD) | free == set(DPLassoClassifier().get_params())


@pytest.mark.parametrize("name", [name for name in BAD if name != "classes"])
def test_parameters_come_before_the_data(name):
    # The data is no better, yet nobody has looked at it.
    assert name in str(refusal({name: BAD[name][0]}, X=None, y=None))


def test_a_selector_that_does_not_fit_the_mechanism():
    assert "selector='argmax' cannot draw" in str(refusal({"selector": "argmax"}))


def test_a_delta_that_cannot_cover_the_draws():
    asked = {"delta": 1e-12, "n_iter": 1000}
    assert "delta must be above" in str(refusal(asked | {"l1_radius": 5.0}))
    assert "too small to cover the rounding" in str(refusal(asked | {"n_iter": 1}))


@pytest.mark.parametrize("epsilon", [1.0, INF])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_values_that_are_no_numbers(epsilon, value, layout):
    broken = X.copy()
    broken[13, 1] = value
    message = str(refusal({"epsilon": epsilon}, X=layout(broken)))
    assert "Input X contains" in message


@pytest.mark.parametrize(
    ("rows", "labels", "expected"),
    [
        (np.empty((0, 3)), np.empty(0), "0 sample"),
        (np.empty((20, 0)), Y, "0 feature"),
        (sp.csr_array((0, 3)), np.empty(0), "0 sample"),
        (X[0], Y, "Expected 2D array, got 1D array"),
        (X[None], Y, "dim 3"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, np.column_stack([Y, Y]), "1d array"),
        (X, None, "requires y to be passed"),
        (X, [NAN, *Y[1:]], "contains NaN"),
        (X, np.linspace(0, 1, 20), "continuous"),
        (np.full((20, 3), "x"), Y, "not a number in row 0, column 0"),
        (X + 1j, Y, "Complex data not supported"),
    ],
)
def test_data_of_the_wrong_shape_or_kind(rows, labels, expected):
    assert expected in str(refusal(X=rows, y=labels))


class TestLabels:
    def test_one_label_asks_for_classes(self):
        error = refusal(y=np.ones(20, dtype=int))
        assert isinstance(error, DataError)
        assert str(error) == "y holds only one class; name all with the parameter classes"

    def test_the_row_of_an_undeclared_label_is_named(self):
        message = str(refusal({"classes": ("no", "yes")}, y=["no", "maybe"] * 10))
        assert message.endswith("row 2 of those that enter")
        assert "maybe" not in message
        assert "declared classes 'no' and 'yes'" in message


class TestDamagedMatrix:
    def test_an_index_outside(self):
        damaged = sp.csr_array(X)
        damaged.indices[7] = 99
        error = refusal(X=damaged)
        assert isinstance(error, DataError)
        assert "an index lies outside 0 to 2" in str(error)

    def test_a_negative_index(self):
        damaged = sp.csc_array(X)
        damaged.indices[7] = -1
        assert "an index lies outside 0 to 19" in str(refusal(X=damaged))

    def test_pointers_beyond_the_entries(self):
        damaged = sp.csr_array(X)
        damaged.indptr = damaged.indptr.copy()
        damaged.indptr[-1] = 1000
        assert "not a valid sparse matrix" in str(refusal(X=damaged))


def test_the_largest_margin_is_finite():
    message = str(refusal({"l1_radius": 1e60, "feature_bound": 1e50}))
    assert message == (
        "l1_radius times feature_bound must be at most 1e+100, got 1e+60 times 1e+50"
    )
    # Either alone is allowed: the guard is the first to object.
    with pytest.raises(pytest.fail.Exception, match="training has started"):
        DPLassoClassifier(l1_radius=1e60, feature_bound=1e40).fit(X, Y)


class TestRefit:
    """A fit that is refused leaves the estimator with the model it had."""

    @pytest.fixture
    def model(self, monkeypatch):
        monkeypatch.undo()
        return DPLassoClassifier(n_iter=5, epsilon=INF).fit(X, Y)

    def refuse(self, model, X, y, words, path):
        before, params = dict(vars(model)), model.get_params()
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
        after = vars(model)
        fitted = set(before) - set(params)
        assert set(after) == set(before)
        assert all(after[name] is before[name] for name in fitted)
        model.save(path / "after.npz")
        return model

    def test_for_a_parameter(self, model, tmp_path):
        before = model.predict_proba(X)
        model.save(tmp_path / "before.npz")
        model.set_params(epsilon=math.nan)
        self.refuse(model, X, Y, "epsilon", tmp_path)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        # The file is of the fit that was made, with its parameters.
        assert (tmp_path / "after.npz").read_bytes() == (tmp_path / "before.npz").read_bytes()

    @pytest.mark.parametrize(
        ("columns", "y", "words"),
        [
            (["a", "b", "c", "d"], np.ones(20), "only one class"),
            (["a", "b", "c", "d"], Y[:-1], "inconsistent"),
        ],
    )
    def test_for_data_with_other_columns(self, model, columns, y, words, tmp_path):
        model.save(tmp_path / "before.npz")
        frame = pandas.DataFrame(
            np.random.default_rng(0).random((20, len(columns))), columns=columns
        )
        self.refuse(model, frame, y, words, tmp_path)
        assert model.n_features_in_ == 3
        assert not hasattr(model, "feature_names_in_")
        assert (tmp_path / "after.npz").read_bytes() == (tmp_path / "before.npz").read_bytes()
        # Data as before are still predicted, without a warning about names.
        model.predict(X)


def test_a_failed_first_fit_is_not_a_fit():
    model = DPLassoClassifier()
    with pytest.raises(DataError):
        model.fit(X, np.ones(20))
    with pytest.raises(AttributeError):
        model.predict(X)
