"""Intervals with sampling error: estimates, tables, what is refused, and files."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, norm
from sklearn.base import clone

import dplasso
from cli.conftest import found as found_by
from cli.conftest import refused, run_command
from dplasso import DPLinearRegression, DPLogisticRegression
from fit.cases import releases
from model.files import rewrite

INF = float("inf")
TRUTH = np.array([1.2, 0.0, -0.8, 0.5])
INTERCEPT = -0.7
NAMES = ["age", "dose", "weight", "sex"]
BOUNDS = (-6.0, 6.0)
SETTINGS = {"infer": "all", "row_norm": 2.0}


def records(n_rows=4_000, numbers=False, seed=0, residual=0.8):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, 4))
    margins = X @ TRUTH + INTERCEPT
    if numbers:
        return X, np.clip(margins + rng.normal(0.0, residual, n_rows), *BOUNDS)
    return X, (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-margins))).astype(int)


def fitted(epsilon=INF, numbers=False, data=None, **options):
    X, y = records(numbers=numbers) if data is None else data
    if numbers:
        return DPLinearRegression(epsilon, target_bounds=BOUNDS, **SETTINGS | options).fit(X, y)
    return DPLogisticRegression(epsilon, classes=[0, 1], **SETTINGS | options).fit(X, y)


def maximum_likelihood(X, y, numbers=False, intercept=True):
    """Return coefficients and robust standard errors (HC0), slow and obvious."""
    rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
    weights = np.zeros(rows.shape[1])
    for _ in range(30):
        margins = rows @ weights
        mean = margins if numbers else 1.0 / (1.0 + np.exp(-margins))
        bend = np.ones(len(y)) if numbers else mean * (1.0 - mean)
        inverse = np.linalg.inv(rows.T @ (bend[:, np.newaxis] * rows))
        weights = weights + inverse @ (rows.T @ (y - mean))
    middle = rows.T @ (((y - mean) ** 2)[:, np.newaxis] * rows)
    return weights, np.sqrt(np.diag(inverse @ middle @ inverse))


@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_noise_it_is_maximum_likelihood_with_robust_errors(numbers, fit_intercept):
    X, y = records(numbers=numbers)
    found = fitted(numbers=numbers, fit_intercept=fit_intercept).inference_
    coef, error = maximum_likelihood(X, y, numbers, fit_intercept)
    np.testing.assert_allclose(found.coef, coef, atol=2e-3)
    np.testing.assert_allclose(found.standard_error, error, rtol=5e-3)
    np.testing.assert_array_equal(found.sampling_error, found.standard_error)
    assert not found.noise_error.any()
    assert found.identified.all()
    np.testing.assert_allclose(found.p_value, 2.0 * norm.sf(np.abs(found.z)))


def test_intervals_cover_and_say_what_part_is_noise():
    covers, zero = [], []
    for seed in range(30):
        X, y = records(seed=seed)
        found = fitted(2.0, data=(X, y), random_state=seed).inference_
        assert found.identified.all()
        low, high = found.conf_int(0.9).T
        covers.append((low <= [*TRUTH, INTERCEPT]) & ([*TRUTH, INTERCEPT] <= high))
        zero.append(found.p_value[1] < 0.05)
        np.testing.assert_allclose(
            found.standard_error, np.hypot(found.noise_error, found.sampling_error)
        )
        assert (found.noise_error > 0.0).all()
    # Of 150 intervals at 90 %, five to a fit.
    assert 0.82 <= np.mean(covers) <= 0.98
    assert np.mean(zero) <= 0.2


@pytest.fixture(scope="module")
def found():
    X, y = records()
    return fitted(3.0, data=(pd.DataFrame(X, columns=NAMES), y), random_state=1).inference_


class TestTable:
    def test_intervals_follow_from_coefficients_and_errors(self, found):
        low, high = found.conf_int(0.9).T
        np.testing.assert_allclose(high - low, 2.0 * norm.ppf(0.95) * found.standard_error)
        np.testing.assert_array_equal(np.column_stack([found.low, found.high]), found.conf_int())
        np.testing.assert_allclose(
            found.odds_ratios(0.9), np.exp(np.column_stack([found.coef, low, high]))
        )
        for level in (0.0, 1.0, 95.0):
            with pytest.raises(ValueError, match="level must be between 0 and 1"):
                found.conf_int(level)

    def test_p_values_are_adjusted_over_the_columns(self, found):
        p_values = found.p_value[:4]
        adjusted = found.adjusted_p_values("benjamini-hochberg")
        np.testing.assert_allclose(adjusted[:4], false_discovery_control(p_values))
        holm = found.adjusted_p_values()
        order = np.argsort(p_values)
        expected = [
            max(min(1.0, (4 - k) * p_values[order[k]]) for k in range(j + 1)) for j in range(4)
        ]
        np.testing.assert_allclose(holm[:4][order], expected)
        assert np.isnan(holm[4])
        with pytest.raises(ValueError, match="method must be 'holm' or 'benjamini-hochberg'"):
            found.adjusted_p_values("bonferroni")

    def test_rows_frame_and_summary_name_each_column(self, found):
        names, lines = [*NAMES, "(intercept)"], found.summary().splitlines()
        assert [row["name"] for row in found.rows()] == list(found.to_frame().index) == names
        np.testing.assert_array_equal(found.to_frame()["noise_error"], found.noise_error)
        json.dumps(found.rows(), allow_nan=False)
        assert max(map(len, lines)) == 80
        assert all(any(line.startswith(name) for line in lines) for name in names)
        assert "of 1 against 0" in lines[0]
        with pytest.raises(ValueError, match="no odds ratios"):
            fitted(numbers=True).inference_.odds_ratios()


def test_what_is_not_identified_is_named_and_has_no_interval():
    X, y = records()
    twice = np.column_stack([X, X[:, 0]])
    for epsilon in (INF, 5.0):
        found = fitted(epsilon, data=(twice, y), row_norm=3.0, random_state=0).inference_
        assert found.not_identified == ["x0", "x4", "(intercept)"]
        lost = ~found.identified
        for name in ("coef", "standard_error", "z", "p_value", "low", "high"):
            assert np.isnan(getattr(found, name)[lost]).all()
            assert np.isfinite(getattr(found, name)[~lost]).all()
        assert found.summary().count("not identified") == 3
        assert "Not identified at this budget: x0, x4, (intercept)" in found.summary()
        rows = found.rows()
        assert rows[0]["coef"] is None
        assert not rows[0]["identified"]
    few = fitted(0.1, data=records(200), random_state=0).inference_
    assert not few.identified.any()
    assert "Not identified at this budget: all of them." in few.summary()
    assert np.isnan(few.adjusted_p_values()).all()


JOBS = ["clerk", "driver", "nurse", "smith"]
CONTRASTS = np.array([0.0, 1.0, -0.8, 0.5])


def workers(n_rows=6_000, seed=0, shares=(0.5, 0.2, 0.2, 0.1)):
    """Return indicators of jobs and a number, and labels; the first job is the most frequent."""
    rng = np.random.default_rng(seed)
    job, age = rng.choice(len(shares), n_rows, p=shares), rng.uniform(-1.0, 1.0, n_rows)
    X = pd.DataFrame(np.eye(len(shares))[job], columns=[f"job={name}" for name in JOBS])
    margins = CONTRASTS[job] + 1.2 * age - 0.4
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-margins))).astype(int)
    return X.assign(age=age), y


class TestReferenceCategories:
    """All columns of a one-hot group are given: one of them is the reference."""

    def test_coefficients_are_differences_from_the_most_frequent_category(self):
        X, y = workers()
        found = fitted(data=(X, y), row_norm=1.5).inference_
        assert found.references == ("job=clerk",)
        assert list(found.names) == [*X.columns[1:], "(intercept)"]
        coef, error = maximum_likelihood(X.drop(columns="job=clerk").to_numpy(), y)
        np.testing.assert_allclose(found.coef, coef, atol=2e-3)
        np.testing.assert_allclose(found.standard_error, error, rtol=5e-3)
        assert "Reference categories, whose coefficient is 0: job=clerk." in found.summary()
        assert found.adjusted_p_values().size == found.coef.size

    def test_a_group_without_one_of_its_columns_has_its_reference_already(self):
        X, y = workers()
        fewer = X.drop(columns="job=nurse")
        found = fitted(3.0, data=(fewer, y), row_norm=1.5, random_state=0).inference_
        assert found.references == ()
        assert found.identified.all()
        assert found.coef[0] == pytest.approx(0.8, abs=0.4)

    def test_without_an_intercept_or_names_there_is_none(self):
        X, y = workers()
        found = fitted(data=(X, y), row_norm=1.5, fit_intercept=False).inference_
        assert (found.references, found.names.size) == ((), 5)
        assert found.identified.all()
        found = fitted(3.0, data=(X.to_numpy(), y), row_norm=1.5, random_state=0).inference_
        assert found.references == ()
        assert not found.identified[:4].any()

    def test_a_schema_declares_the_groups(self, tmp_path):
        X, y = workers()
        job = np.array(JOBS)[X.to_numpy()[:, :4].argmax(axis=1)]
        parts = [
            {"kind": "categories", "column": "job", "categories": JOBS, "missing": "ignore"},
            {"kind": "number", "column": "age", "bound": 1.0, "missing": "ignore"},
        ]
        parts[0]["unknown"] = "ignore"
        encoder = dplasso.PublicEncoder({"parts": parts})
        rows = encoder.fit_transform(pd.DataFrame({"job": job, "age": X["age"]}))
        model = fitted(3.0, data=(rows, y), row_norm=1.5, random_state=0)
        by_name = fitted(3.0, data=(X, y), row_norm=1.5, random_state=0).inference_
        assert model.inference_.references == by_name.references == ("job=clerk",)
        np.testing.assert_allclose(model.inference_.coef, by_name.coef, atol=1e-4)
        model.save(tmp_path / "model.npz")
        again = dplasso.load(tmp_path / "model.npz").inference_
        assert (again.rows(), again.references) == (model.inference_.rows(), ("job=clerk",))


def test_nearly_empty_columns_leave_the_others_identified():
    X, y = records()
    empty = np.zeros((len(X), 3))
    empty[0, 0] = 1.0
    found = fitted(5.0, data=(np.hstack([X, empty]), y), random_state=0).inference_
    assert found.not_identified == ["x4", "x5", "x6"]
    truth = [*TRUTH, INTERCEPT]
    errors = np.abs(found.coef - [*TRUTH, 0.0, 0.0, 0.0, INTERCEPT])[found.identified]
    assert errors.size == len(truth)
    assert (errors < 3.5 * found.standard_error[found.identified]).all()


def test_many_weak_columns_are_not_taken_for_empty_ones():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (2_000, 40))
    y = (rng.random(2_000) < 0.5).astype(int)
    found = fitted(0.5, data=(X, y), row_norm=40**0.5, random_state=0).inference_
    assert not found.identified.any()


def test_two_noisy_curvatures_are_weighted_by_their_precisions():
    X, y = records(500, numbers=True)
    errors, upper = [], np.triu_indices(5)
    for seed in range(30):
        model = fitted(1.0, numbers=True, data=(X, y), random_state=seed)
        held = {name.removeprefix("moments-"): part for name, part in releases(model).items()}
        # Of a regression the curvature is the same at all weights.
        rows = np.column_stack([X * held["entry_scale"], np.full(500, held["constant"])])
        exact = np.where(upper[0] == upper[1], 1.0, 2**0.5) * (rows.T @ rows)[upper]
        errors.append((held["curvature"] - exact) / held["curvature_deviation"])
    # Of 450 squares; either curvature alone has twice the variance.
    assert 0.8 < np.mean(np.square(errors)) < 1.2
    numbers = model.privacy_.find("inference").numbers
    spent = model.privacy_.mu * numbers["share_curvature"] ** 0.5
    expected = numbers["sensitivity_curvature"] / spent
    assert held["curvature_deviation"] == pytest.approx(expected, rel=1e-6)


@pytest.fixture(scope="module")
def of_sums(tmp_path_factory):
    """Return intervals of these sums of two columns and the constant entry."""
    path = tmp_path_factory.mktemp("sums") / "model.npz"
    fitted(3.0, data=(records()[0][:, :2], records()[1])).save(path)
    with np.load(path) as file:
        place = max(name for name in file.files if "-moments-" in name).rpartition("-")[0]
    known = {"weights": np.zeros(3), "gradient": np.zeros(3), "squares": np.ones(6)}
    known |= {"curvature": np.array([100.0, 0.0, 0.0, 100.0, 0.0, 100.0]), "constant": 0.5}
    known |= {f"{name}_deviation": 1.0 for name in ("gradient", "curvature", "squares")}
    known |= {"n_records": 1_600.0, "entry_scale": 0.5}

    def made(**changes):
        rewrite(path, **{f"{place}-{name}": part for name, part in (known | changes).items()})
        return dplasso.load(path).inference_

    return made


def test_squares_without_negative_eigenvalues_keep_about_their_sum(of_sums):
    noisy = of_sums(squares=np.array([30.0, 0.0, 0.0, -20.0, 0.0, 5.0])).sampling_error
    # The trace is 15, and its noise has a standard deviation of the root of three.
    expected = np.array([30.0, 0.0, 5.0]) / 35.0 * (15 + 3**0.5)
    np.testing.assert_allclose((noisy * 2.0 * 100.0) ** 2, expected, atol=1e-12)
    clear = of_sums(squares=np.array([30.0, 0.0, 0.0, 20.0, 0.0, 5.0])).sampling_error
    np.testing.assert_allclose((clear * 2.0 * 100.0) ** 2, [30.0, 20.0, 5.0])


def test_the_intercept_of_a_rare_class_has_the_error_of_a_newton_step(of_sums):
    # Curvatures of 1,600 records: p (1 - p) is 1/4, with classes alike, and 1/16.
    numbers, alike, rare = (
        (2.0 * of_sums(gradient=np.array([100.0, 0.0, 0.0]), n_records=n).noise_error[2]) ** 2
        for n in (400.0, 1_600.0, 6_400.0)
    )
    moved = 1.0**2 * 100.0 / 400.0
    left_out = 0.5 * 0.75**0.5 * moved / 0.5
    assert rare - alike == pytest.approx(left_out**2)
    assert numbers == alike


def test_named_columns_have_the_intervals_that_they_have_among_all(tmp_path):
    X, y = records()
    data = pd.DataFrame(X, columns=NAMES), y
    whole = fitted(1.0, data=data, random_state=0).inference_
    model = fitted(1.0, data=data, random_state=0, infer=["sex", "dose"])
    found = model.inference_
    assert found.names.tolist() == ["dose", "sex"]
    assert found.rows() == [row for row in whole.rows() if row["name"] in found.names]
    # Holm's smaller one of two tests.
    assert found.adjusted_p_values()[1] == pytest.approx(2.0 * found.p_value[1])
    model.save(tmp_path / "model.npz")
    assert dplasso.load(tmp_path / "model.npz").inference_.rows() == found.rows()
    by_number = fitted(1.0, random_state=0, infer={"columns": [1, 3], "share": 0.5}).inference_
    assert by_number.names.tolist() == ["x1", "x3"]


def test_intervals_cost_their_share_of_the_budget(tmp_path):
    errors, names = {}, ("gradient", "curvature", "squares")
    for share in (0.2, 0.5, 0.8):
        options = SETTINGS | {"infer": {"columns": "all", "share": share}}
        model = fitted(1.0, random_state=0, **options)
        stated = model.privacy_.find("inference")
        assert stated.numbers["share"] == share
        assert sum(stated.numbers[f"share_{name}"] for name in names) == pytest.approx(share)
        assert [stated.numbers[f"sensitivity_{name}"] for name in names] == [1.0, 0.25, 1.0]
        assert f"noisy sums for intervals, with {100 * share:g} % of mu^2" in stated.words
        assert dplasso.privacy_cost(1.0, n_features=4, **options).find("inference") == stated
        errors[share] = releases(model)["moments-gradient_deviation"]
    # Noise falls with the root of the share.
    assert errors[0.2] == pytest.approx(2.0 * errors[0.8], rel=1e-6)
    model.save(tmp_path / "model.npz")
    again = dplasso.load(tmp_path / "model.npz")
    assert again.get_params()["infer"] == {"columns": "all", "share": 0.8}
    assert clone(again).infer == {"columns": "all", "share": 0.8}
    plain = fitted(1.0, random_state=0).inference_.rows()
    assert fitted(1.0, infer={"columns": "all"}, random_state=0).inference_.rows() == plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"infer": "some"}, "infer names the column 'some', which .* not have; name some of 'x0'"),
        ({"infer": ["x0", "x9"]}, "infer names the column 'x9', which the data do not have"),
        ({"infer": []}, "infer must be None, 'all', names of columns, .*, got \\[\\]"),
        ({"infer": 3}, "infer must be None, 'all', names of columns, or .*, got 3"),
        ({"infer": {"columns": "all", "part": 0.3}}, "infer must be None, 'all', names"),
        ({"infer": {"share": 0.3}}, "infer must be None, 'all', names"),
        ({"infer": {"columns": "all", "share": 0.0}}, "share of infer must be a number above 0"),
        ({"infer": {"columns": "all", "share": 1.0}}, "up to 0.9, got 1.0"),
        ({"infer": {"columns": "all", "share": "half"}}, "up to 0.9, got 'half'"),
        ({"row_norm": "unit"}, "infer needs row_norm to be a number"),
        ({"max_weights": 3}, "infer and max_weights cannot be combined"),
        ({"class_weight": "balanced"}, "infer and class_weight cannot be combined"),
        ({"prior": np.ones(4)}, "infer and prior cannot be combined"),
        ({"classes": [0, 1, 2]}, "infer takes two classes or a regression"),
    ],
)
def test_what_does_not_go_with_intervals_is_refused(options, message):
    model = DPLogisticRegression(**{"classes": [0, 1]} | SETTINGS | options)
    with pytest.raises(ValueError, match=message):
        model.fit(*records(50))
    assert not hasattr(model, "coef_")


def planned(n_rows, *options, epsilon=2):
    """Return what a plan says of intervals, and the epsilon of its fit."""
    known = ("--epsilon", epsilon, "--rows", n_rows, "--columns", 4, "--spread", 3**-0.5)
    report = found_by("plan", "--infer", *known, *options)
    (fit,) = [part for part in report["parts"] if part["name"] == "fit"]
    return report["intervals"], fit["epsilon"]


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
def test_plans_are_about_what_fits_give(numbers, neighbors):
    own = ("--target-bounds=-6,6",) if numbers else ("--row-norm", 2, "--positive", 0.35)
    plan, epsilon = planned(8_000, *own, "--neighbors", neighbors)
    # Plans take residuals for a quarter of half the interval.
    data = records(8_000, numbers=numbers, residual=1.5)
    table = fitted(epsilon, numbers, data, random_state=0, neighbors=neighbors).inference_
    assert plan["identified"]
    ours = np.median(table.standard_error[:4]), np.median(table.sampling_error[:4])
    assert ours == pytest.approx((plan["standard_error"], plan["without_privacy"]), rel=0.25)
    assert plan["width"] == pytest.approx(2.0 * norm.ppf(0.975) * plan["standard_error"])


def test_as_many_rows_as_are_planned_find_the_effect():
    few, _ = planned(700, "--effect", 0.5, epsilon=1)
    assert not few["identified"]
    enough, _ = planned(math.ceil(few["rows_needed"]), epsilon=1)
    assert enough["identified"]
    # 80 % at p < 0.05: 1.96 + 0.84 standard errors, or as many rows as identify it.
    assert 0.5 / enough["standard_error"] >= 2.8 - 0.01
    fewer, _ = planned(int(0.9 * few["rows_needed"]), epsilon=1)
    assert not fewer["identified"] or 0.5 / fewer["standard_error"] < 2.8
    assert enough["rows_needed"] is None
    # More budget for intervals makes them narrower.
    widths = [planned(9_000, "--infer-share", share)[0]["width"] for share in (0.3, 0.5, 0.8)]
    assert widths == sorted(widths, reverse=True)
    for option, value in (("--positive", 0), ("--power", 1)):
        told = run_command(
            "plan", "--infer", "--epsilon", 1, "--rows", 9, "--columns", 4, option, value
        )
        refused(told, f"{option} must be between 0 and 1")
