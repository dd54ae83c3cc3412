"""Bad input: one clear sentence that names what is wrong, and an estimator left as it was."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
import sklearn
from rich.progress import Progress
from sklearn.exceptions import NotFittedError

from estimators.kinds import BOUNDS, CLASSIFIERS, EVERY, REGRESSIONS, each_kind, every_kind, make

LOOP = ["frank-wolfe"]

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).random((20, 3))
Y = np.arange(20) % 2
DAYS = np.arange(20, dtype="m8[D]")[:, np.newaxis]

COUNTS = [0, -1, 1.5, "x"]
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
    "residual_bound": [0.0, 2.1, NAN, "x"],
    "max_weights": [0, "few", 2.5, True],
    "row_norm": [0.0, INF, "long"],
    "infer": [[], 5, {"columns": 3}],
    "target_bounds": [
        None,
        (1.0, 1.0),
        (0.0, INF),
        (0.0, NAN),
        (0.0, 5e-324),
        5.0,
        ("low", "high"),
    ],
    "n_records": COUNTS,
    "rows_per_person": [*COUNTS, True, None],
    "class_weight": ["even", {0: 1.0}, (1.0,), (1.0, -1.0), 5],
    "ledger": [5, True, b"x", ""],
    "classes": ["ab", (0,), (1, 1), 7],
    "prior": [{}, {1}, object],
    "public_data": [5, "x", (1,)],
    "public_rows": [5, object, (1.0, 2.0), np.ones(3)],
}


def refusal(kind, parameters=None, X=X, y=Y):
    """Return the error of a fit, after which there is no model."""
    model = make(kind, **parameters or {})
    with pytest.raises((ValueError, TypeError)) as caught:
        model.fit(X, y)
    assert not vars(model).keys() - model.get_params().keys()
    return caught.value


@every_kind
def test_every_parameter_with_wrong_values_is_in_the_table(kind):
    assert make(kind).get_params().keys() <= BAD.keys() | {"fit_intercept", "verbose"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in EVERY for name in BAD if name in make(kind).get_params()],
)
def test_a_bad_parameter_is_named_before_the_data_are_looked_at(kind, name):
    for value in BAD[name]:
        for others in ({}, {"epsilon": INF}):
            data = {} if name == "classes" else {"X": None, "y": None}
            message = str(refusal(kind, others | {name: value}, **data))
            assert name in message
            assert "\n" not in message
            if value is not None or name != "target_bounds":
                told = repr(value), str(value), f"of type {type(value).__name__}"
                assert any(words in message for words in told)


@pytest.mark.parametrize(
    ("kinds", "parameters", "words"),
    [
        (REGRESSIONS, {"target_bounds": None}, "target_bounds is missing: give the interval"),
        (LOOP, {"residual_bound": 0.4}, "must be 'auto' or a number from 0.5 to 1, got 0"),
        (["logistic", "linear"], {"max_weights": 0}, "max_weights must be None"),
        (["logistic", "linear", "lasso"], {"delta": 1e-60}, "too small to cover the rounding"),
        (["lasso"], {"max_weights": "some"}, "must be None or a whole number >= 1, got 's"),
        (LOOP, {"class_weight": {0: 1.0}, "classes": [0, 1]}, "a weight for each label"),
        (["logistic"], {"class_weight": [1.0, 2.0, 3.0]}, "a weight for each class in their order"),
        (LOOP, {"class_weight": "balanced"}, "is for DPLogisticRegression"),
        (LOOP, {"mechanism": "paper", "class_weight": (1.0, 2.0)}, "has no class_weight; leave it"),
        (LOOP, {"selector": "argmax"}, "selector='argmax' does not support"),
        (
            LOOP,
            {"delta": 1e-12, "n_iter": 1000, "fit_intercept": False, "n_records": 100},
            "delta must be above",
        ),
        (
            LOOP,
            {"l1_radius": 1e60, "feature_bound": 1e50},
            "l1_radius times feature_bound must be at most 1e+100, got 1e+60 times 1e+50",
        ),
    ],
)
def test_what_is_wrong_is_said(kinds, parameters, words):
    for kind in kinds:
        assert words in str(refusal(kind, parameters))


@each_kind
@pytest.mark.parametrize("epsilon", [1.0, INF])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_entries_that_are_no_numbers(kind, epsilon, value):
    broken = X.copy()
    broken[13, 1] = value
    for layout in (np.asarray, sp.csr_array, sp.csc_array, sp.coo_array):
        assert "Input X contains" in str(refusal(kind, {"epsilon": epsilon}, X=layout(broken)))


@each_kind
@pytest.mark.parametrize(
    ("rows", "labels", "expected"),
    [
        # What else is wrong is among the checks of scikit-learn.
        (sp.csr_array((0, 3)), np.empty(0), "0 sample"),
        (X[None], Y, "dim 3"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, np.zeros((20, 2, 2)), "Found array with dim 3"),
        (np.full((20, 3), "x", object), Y, "not a number in row 0, column 0"),
        # One text among numbers makes texts of all, those of float16 with three digits.
        (np.array([*X.astype(np.float16)[1:], ["0.5"] * 3]), Y, "X is an array of texts"),
        (X.view(np.matrix), Y, "np.asarray"),
        # One record decides on the unit of all.
        *(
            (times, Y, "X holds dates or durations")
            for times in (DAYS, DAYS.astype("M8[D]"), list(DAYS), pandas.DataFrame(DAYS))
        ),
    ],
)
def test_data_of_the_wrong_shape_or_kind(kind, rows, labels, expected):
    assert expected in str(refusal(kind, X=rows, y=labels))


@each_kind
def test_missing_values_are_told_of_what_is_private(kind):
    """scikit-learn recommends models that are not."""
    broken = X.copy()
    broken[3, 1] = NAN
    message = str(refusal(kind, X=broken))
    assert message.startswith("Input X contains NaN: encode the table by a schema")
    assert "sklearn" not in message
    for y in ([NAN, *Y[1:]], np.array([NAN, *Y[1:]], object)):
        assert str(refusal(kind, y=y)) == "Input y contains NaN: every row needs a label"
    with sklearn.config_context(assume_finite=True):
        assert str(refusal(kind, X=broken)) == message


@each_kind
class TestRefit:
    """A fit that is refused or interrupted leaves the estimator with the model it had."""

    def frame(self, columns):
        entries = np.random.default_rng(0).random((20, len(columns)))
        return pandas.DataFrame(entries, columns=columns)

    def test_a_model_and_its_names_stay(self, kind, tmp_path):
        y = Y if kind in CLASSIFIERS else np.linspace(*BOUNDS, 20)
        model = make(kind, INF).fit(self.frame(["a", "b", "c"]), y)
        model.save(tmp_path / "before.npz")
        before, predicted = dict(vars(model)), model.predict(self.frame(["a", "b", "c"]))
        others = {"epsilon": NAN, "delta": 1e-9, "neighbors": "replace-one", "fit_intercept": False}
        broken = self.frame(list("vwxyz"))
        broken.iloc[3, 2] = NAN
        for change, rows, labels in [
            ({}, broken, y),
            ({}, self.frame(list("vwxyz")), y[:-1]),
            (others, self.frame(list("vwxyz")), y),
        ]:
            with pytest.raises(ValueError):
                model.set_params(**change).fit(rows, labels)
            fitted = before.keys() - model.get_params().keys()
            assert vars(model).keys() == before.keys()
            assert all(getattr(model, name) is before[name] for name in fitted)
            # The file is of the fit that was made, with its parameters.
            model.save(tmp_path / "after.npz")
            assert (tmp_path / "after.npz").read_bytes() == (tmp_path / "before.npz").read_bytes()
        # Data as before are predicted as before, without a warning about names.
        np.testing.assert_array_equal(model.predict(self.frame(["a", "b", "c"])), predicted)

    def test_an_interrupted_fit_leaves_no_model(self, kind, monkeypatch):
        def stop(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(Progress, "update", stop)
        model = make(kind, verbose=1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        with pytest.raises(NotFittedError):
            model.predict(X)
