"""Intervals of named columns among many, with public rows that predict them."""

import numpy as np
import pandas as pd
import pytest

import dplasso
from dplasso import DPLinearRegression, DPLogisticRegression, Geometry, Ledger, PublicEncoder
from dplasso.cluster import InProcessEngine
from dplasso.ledger import create_ledger
from fit.cases import releases

INF = float("inf")
D, BOUNDS = 400, (-6.0, 6.0)
EFFECTS = (0.0, 0.5)


def rows(n_rows, seed):
    """Return a treatment and a dose, then columns of which the first ten confound both."""
    rng = np.random.default_rng(seed)
    others = (rng.random((n_rows, D - 2)) < 0.03).astype(float)
    confounded = others[:, :10].sum(axis=1)
    treatment = rng.random(n_rows) < 0.3 + 0.2 * np.minimum(confounded, 3.0)
    dose = 0.5 * confounded + rng.normal(size=n_rows)
    return np.column_stack([treatment, dose, others]), confounded


def records(n_rows=4_000, seed=0):
    X, confounded = rows(n_rows, seed)
    noise = np.random.default_rng(seed + 1_000).normal(size=n_rows)
    return X, X[:, :2] @ EFFECTS + confounded + noise


PUBLIC = rows(3_000, 99)[0]
SETTINGS = {"infer": [0, 1], "row_norm": 4.0, "public_rows": PUBLIC, "target_bounds": BOUNDS}


def fitted(epsilon=INF, data=None, engine=None, **options):
    X, y = records() if data is None else data
    engine = {} if engine is None else {"engine": engine}
    return DPLinearRegression(epsilon, **SETTINGS | options).fit(X, y, **engine)


def test_without_noise_the_residual_is_projected_on_what_public_rows_leave():
    X, y = records()
    # Without privacy, among few columns alone.
    X, public = X[:, :300], PUBLIC[:, :300]
    model = fitted(data=(X, y), row_norm=20.0, public_rows=public)
    held, table = releases(model), model.inference_
    residual = np.clip(y, *BOUNDS) - model.predict(X)
    for k, place in enumerate((0, 1)):
        # Slow and obvious: ridge regression with a penalty of one row's energy for each column.
        others = np.setdiff1d(np.arange(300), place)
        centred = public[:, others] - public[:, others].mean(axis=0)
        entries = np.count_nonzero(public[:, others], axis=0)
        penalties = np.diag((centred**2).sum(axis=0) / entries)
        target = PUBLIC[:, place] - PUBLIC[:, place].mean()
        weights = np.linalg.solve(centred.T @ centred + penalties, centred.T @ target)
        left = target - centred @ weights
        z = X[:, place] - PUBLIC[:, place].mean()
        z = z - (X[:, others] - public[:, others].mean(axis=0)) @ weights
        z = np.clip(z, -np.abs(left).max(), np.abs(left).max())
        curvature = z @ np.clip(X[:, place], None, np.abs(PUBLIC[:, place]).max())
        assert held["named-sums"][1, k] == pytest.approx(curvature, rel=1e-4)
        start = 6.0 * held["named-start"][k]
        assert table.coef[k] == pytest.approx(start + residual @ z / curvature, rel=1e-4)
        squares = ((residual * z) ** 2).sum() * (1.0 + len(X) / len(PUBLIC))
        assert table.sampling_error[k] == pytest.approx(np.sqrt(squares) / curvature, rel=1e-4)
    assert (table.noise_error == 0.0).all()


def test_intervals_cover():
    scores = []
    for seed in range(10):
        table = fitted(3.0, data=records(seed=seed), random_state=seed).inference_
        assert table.identified.all()
        scores.append((table.coef - EFFECTS) / table.standard_error)
    scores = np.array(scores)
    # Errors are on the safe side: they count residuals as what the fit misses.
    assert 0.4 < np.sqrt(np.mean(scores**2)) < 1.1
    assert np.abs(scores.mean(axis=0)).max() < 0.5


def test_the_table_names_columns_and_what_it_adjusts_for(tmp_path):
    X, y = records()
    names = ["treatment", "dose", *(f"word{j}" for j in range(D - 2))]
    tables = [pd.DataFrame(part, columns=names) for part in (X, PUBLIC)]
    options = {"infer": ["dose", "treatment"], "public_rows": tables[1]}
    model = fitted(1.0, data=(tables[0], y), **options)
    table = model.inference_
    assert table.names.tolist() == ["treatment", "dose"]
    assert f"adjusts for {D} of {D} columns, with predictions" in table.summary()
    model.save(tmp_path / "model.npz")
    assert dplasso.load(tmp_path / "model.npz").inference_.rows() == table.rows()
    stated = model.privacy_
    assert "predicts the named columns by 3,000 public rows" in str(stated)
    assert "latent directions" not in str(stated)
    numbers = stated.find("inference").numbers
    assert numbers == {"share": 0.5, "sensitivity": 1.0}
    cost = dplasso.privacy_cost(1.0, method="linear", **SETTINGS | options)
    assert cost.find("inference") == stated.find("inference")


def test_more_columns_share_the_budget_and_other_shares_are_a_setting():
    alone, both, more = (
        releases(fitted(1.0, infer=named, random_state=0))["named-deviations"][:, 0]
        for named in ([0], [0, 1], {"columns": [0], "share": 0.8})
    )
    assert both == pytest.approx(2**0.5 * alone, rel=1e-6)
    assert more == pytest.approx(0.625**0.5 * alone, rel=1e-6)


def test_labels_alone_need_no_noise_in_the_curvature():
    X, y = records()
    model = fitted(1.0, data=(X, y), neighbors="label", public_rows=X)
    assert ((releases(model)["named-deviations"] > 0.0).all(axis=1) == [True, False, True]).all()


EMPTY = ["job (unknown)", "job (missing)"]


def test_the_most_frequent_category_in_public_rows_is_the_reference():
    rng, words = np.random.default_rng(0), np.array(["clerk", "driver", "nurse"])
    job = {"kind": "categories", "column": "job", "categories": words.tolist()}
    encoder = PublicEncoder({"parts": [job, {"kind": "number", "column": "dose", "bound": 3.0}]})
    parts = []
    for size in (3_000, 2_000):
        jobs, dose = rng.choice(words, size, p=(0.2, 0.5, 0.3)), rng.normal(size=size)
        parts.append(encoder.transform(pd.DataFrame({"job": jobs, "dose": dose})))
    y = parts[0].toarray()[:, 2] - 1.0 + rng.normal(size=3_000)
    options = {"data": (parts[0], y), "public_rows": parts[1]}
    table = fitted(infer="job", **options).inference_
    dense = parts[0].toarray()
    rows = np.column_stack([dense[:, [0, 2, -1]], np.ones(3_000)])
    assert table.coef[:2] == pytest.approx(np.linalg.lstsq(rows, y)[0][:2], abs=1e-3)
    assert table.references == ("job=driver",)
    assert table.names.tolist() == ["job=clerk", "job=nurse", *EMPTY]
    assert table.not_identified == EMPTY
    assert fitted(infer=["job=clerk"], **options).inference_.coef == table.coef[0]
    with pytest.raises(ValueError, match="names only reference categories; name others"):
        fitted(infer=["job=driver"], **options)


def test_noise_that_hides_a_column_is_named():
    X, y = records(400)
    table = fitted(0.1, data=(X, y)).inference_
    assert table.not_identified == ["x0", "x1"]
    assert np.isnan(table.coef).all()


SAME = np.where(np.arange(D) == 1, PUBLIC[:, [0]], PUBLIC)
RARE = np.where(np.arange(D) == 1, np.arange(3_000)[:, np.newaxis] < 9, PUBLIC)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"infer": [0, 400]}, "infer names the column 'x400', which the data do not have"),
        ({"public_rows": SAME}, "the column 'x0' of infer follows from the other columns"),
        ({"public_rows": RARE}, "the column 'x1' of infer has entries in 9 rows of public_rows"),
        ({"infer": [1], "public_rows": PUBLIC[:15]}, "no other column has 10 entries"),
        ({"public_rows": PUBLIC[:, 1:]}, "public_rows has 399 columns and the data have 400"),
        ({"public_rows": np.full_like(PUBLIC, np.inf)}, "public_rows has NaN or infinity"),
        ({"public_rows": Geometry.learn(PUBLIC)}, "needs public rows, and public_rows is their"),
        ({"epsilon": 31.0}, "infer among more than 300 columns needs an epsilon of at most 30"),
        ({"epsilon": INF, "ledger": None}, "needs an epsilon of at most 30, got inf"),
        ({"public_rows": None}, "infer takes at most 300 columns without public_rows, and X has"),
        ({"infer": "all"}, "public_rows needs rows of unit length"),
        ({"infer": list(range(301))}, "infer may name at most 300 columns"),
        ({"engine": InProcessEngine()}, "public_rows needs all records in one process"),
    ],
)
def test_what_gives_no_interval_is_refused_before_the_charge(options, message, tmp_path):
    path = tmp_path / "ledger.db"
    create_ledger(path, 5.0, 1e-5)
    X, y = records(200)
    if "engine" in options:
        X, y = [X], [y]
    with pytest.raises(ValueError, match=message):
        fitted(data=(X, y), **{"epsilon": 1.0, "ledger": path} | options)
    assert Ledger(path).budget().entries == ()


def test_a_logistic_regression_is_refused_and_a_regression_of_0_and_1_is_not():
    X, y = records(2_000)
    labels = (y > 0.5).astype(int)
    options = {name: value for name, value in SETTINGS.items() if name != "target_bounds"}
    with pytest.raises(ValueError, match=r"is for regressions.* y as 0 and 1"):
        DPLogisticRegression(1.0, classes=[0, 1], **options).fit(X, labels)
    table = fitted(3.0, (X, labels), target_bounds=(-0.5, 1.5)).inference_
    rows = np.column_stack([X[:, :12], np.ones(len(X))])
    expected = np.linalg.lstsq(rows, labels)[0][:2]
    assert (np.abs(table.coef - expected) < 2.5 * table.standard_error).all()
