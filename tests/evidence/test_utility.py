"""The utility list: competitors do what they say, cells are kept, the page holds the figures."""

import json
import math
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from evidence.items import ROOT, Settings
from evidence.report import fill
from evidence.runner import published
from evidence.utility import (
    competitors,
    intervals,
    items,
)
from evidence.utility.fits import DELTA, METHODS, auc, scores
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dplasso import privacy_cost
from evidence import __main__ as command


def records(n_rows=400, n_columns=12, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_columns), density=0.4, format="csr", rng=rng)
    X.data[:] = 1.0
    y = (X[:, [0]].toarray().ravel() + rng.random(n_rows) > 0.8).astype(np.int8)
    return sp.csr_array(X), y


def test_the_minimum_is_scikit_learns():
    X, y = records()
    found = competitors.minimum(X, y, 2.0)
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(found, model.coef_.ravel(), atol=1e-5)
    linear = np.linspace(-3.0, 3.0, 12)
    found = competitors.minimum(X, y, 2.0, linear)
    gradient = X.T @ (expit(X @ found) - y) + 2.0 * found + linear
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4)


def test_output_noise_covers_a_record_and_is_of_its_size():
    X, y = records(60)
    rows = competitors.with_constant(X, unit=True)
    strength = competitors.L2 * 60
    whole = competitors.minimum(rows, y, strength)
    moved = [
        np.linalg.norm(competitors.minimum(rows[keep], y[keep], strength) - whole)
        for keep in (np.arange(60) != i for i in range(60))
    ]
    assert 0.1 / strength < max(moved) <= 1.0 / strength
    rng = np.random.default_rng(1)
    draws = [
        competitors.output_perturbation(X, y, 1.0, DELTA, rng, lambda _: None) - whole
        for _ in range(200)
    ]
    expected = 1.0 / (strength * privacy_cost(1.0, DELTA).mu)
    # 2,600 normal draws: five standard deviations are 7 %, false alarms below 1e-6.
    assert abs(np.std(draws) / expected - 1.0) < 0.07


def test_noise_of_dp_sgd_against_the_exact_curve():
    """Without subsampling the steps are Gaussian: Renyi accounting asks for a little more noise."""
    exact = math.sqrt(7) / privacy_cost(1.0, DELTA).mu
    noise = competitors.sgd_noise(1.0, DELTA, 1.0, 7)
    assert exact < noise < 1.15 * exact
    assert competitors.sgd_noise(1.0, DELTA, 0.1, 7) < 0.5 * noise


def test_dp_sgd_clips_every_record(monkeypatch):
    """Without noise, one step from zero moves by the clipped gradients of the batch alone."""
    monkeypatch.setattr(competitors, "sgd_noise", lambda *_: 0.0)
    monkeypatch.setattr(competitors, "EPOCHS", 1)
    monkeypatch.setattr(competitors, "BATCH", 400)
    X, y = records()
    found = competitors.dp_sgd(X, y, 1.0, DELTA, np.random.default_rng(0), lambda _: None)
    rows = np.c_[X.toarray(), np.ones(400)]
    gradients = (0.5 - y)[:, None] * rows
    lengths = np.linalg.norm(gradients, axis=1)
    assert lengths.max() > 1.0
    clipped = gradients / np.maximum(1.0, lengths)[:, None]
    np.testing.assert_allclose(found, -competitors.RATE / 400 * clipped.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("method", ["dp-sgd", "output", "objective"])
def test_with_a_large_budget_competitors_learn(method, monkeypatch):
    monkeypatch.setattr(competitors, "RATE", 1.0)
    X, y = records(1000)
    rng = np.random.default_rng(0)
    found = competitors.COMPETITORS[method](X, y, 50.0, DELTA, rng, lambda _: None)
    assert found.argmax() == 0
    assert found[0] > 3 * np.abs(found[1:12]).max()


def test_scores_against_their_definitions():
    y, p = np.array([0, 1, 1, 0]), np.array([0.12, 0.18, 0.9, 1.0])
    found = scores(y, p, np.minimum(p, 0.99))
    assert found["auc"] == 0.5
    # Tenths: 0.1 to 0.2 holds .30 for one positive, the last one 1.89 for one.
    assert found["calibration_error"] == pytest.approx((0.70 + 0.89) / 4)
    expected = -np.log([0.88, 0.18, 0.9, 0.01]).mean()
    assert found["log_loss"] == pytest.approx(expected)


def test_cells_are_kept_and_make_the_page(rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(items, "ALL", ("logistic", "lasso", "none", "output", "diffprivlib"))
    monkeypatch.setattr(competitors, "DENSE_BYTES", 0)
    given = ("--data", str(rows), "--out", str(tmp_path), "--jobs", "1")
    own = ("--epsilons", "0.5", "1", "--draws", "2")
    assert command.main(["utility", *given, *own]) == 0
    assert "diffprivlib needs dense rows" in capsys.readouterr().out
    cells = {path.stem: path for path in (tmp_path / "cells").glob("*.json")}
    assert len(cells) == 4 * 2 + 2 + 1 + 2 + 2
    kept = json.loads(cells["logistic-tiny-30-1"].read_text())["result"]
    assert len(kept["runs"]) == 2
    assert kept["training_rows"] == 64
    assert max(run["weights"] for run in kept["runs"]) <= 30
    found = items.collect(tmp_path, tuple(METHODS))
    page = fill("<!-- utility-1 -->\n<!-- end -->\n", [items.summary_item(found)])
    value = sum(run["auc"] for run in kept["runs"]) / 2
    assert f"| DPLogisticRegression, at most 30 weights | {value:.3f} |" in page
    assert (tmp_path / "utility-epsilon.svg").stat().st_size > 5_000
    # One method is measured anew by its name, the others stay.
    before = {name: path.stat().st_mtime_ns for name, path in cells.items()}
    assert command.main(["utility/lasso", *given, *own, "--again"]) == 0
    after = {name: path.stat().st_mtime_ns for name, path in cells.items()}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"lasso-tiny-own-0.5", "lasso-tiny-own-1"}


class Printing:
    """Stands for an estimator whose weights scatter by `ERRORS`, and which prints `PRINTED`."""

    ERRORS = np.geomspace(0.01, 3.0, 40)
    PRINTED = ERRORS

    def __init__(self, epsilon, delta, **options):
        pass

    def set_params(self, random_state):
        self.rng = np.random.default_rng(random_state)
        return self

    def fit(self, X, y):
        slope = self.rng.uniform(0.5, 2.0)
        weights = 5.0 + self.ERRORS * self.rng.standard_normal(40)
        self.coef_ = slope * weights[None, :]
        self.coef_standard_error_ = slope * self.PRINTED


def test_each_standard_error_is_compared_with_its_own_column(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("dplasso.DPLogisticRegression", Printing)
    halved = Printing.ERRORS * np.where(np.arange(40) == 7, 0.5, 1.0)
    for too_small, printed in enumerate((Printing.ERRORS, halved)):
        monkeypatch.setattr(Printing, "PRINTED", printed)
        out = tmp_path / str(too_small)
        given = ("--data", str(rows), "--out", str(out), "--epsilons", "1", "--fits", "100")
        assert command.main(["utility/standard-errors", *given]) == too_small
        (path,) = (out / "cells").glob("*.json")
        found = json.loads(path.read_text())["result"]
        assert found["all"]["too_small"] == too_small
        # 40 columns of 100 draws: five standard deviations of the root mean square are 6 %.
        assert too_small or found["all"]["root_mean_square"] == pytest.approx(1.0, abs=0.06)
        assert sum(group["columns"] for group in found["groups"]) == 40


def test_the_pages_follow_from_the_published_results(tmp_path):
    shutil.copytree(published("utility") / "cells", tmp_path / "cells")
    files = items.publish([], Settings(), tmp_path)
    pages = [ROOT / "docs" / f"{name}.md" for name in ("utility", "howto-inference")]
    text = "".join(page.read_text() for page in (*pages, published("utility") / "every.md"))
    tables = (tmp_path / "utility.md").read_text().strip().split("\n\n")
    assert len(tables) == 10
    assert all(table in text for table in tables)
    drawn = {name.removesuffix("-narrow") for name in files} - {"utility"}
    assert all(f"images/{name}.svg" in text for name in drawn)


def test_coverage_is_counted_over_identified_coefficients():
    pytest.importorskip("statsmodels")
    measure = intervals.Coverage("uniform", 2_000, 5, 5.0, 3, 1)
    shares = []
    found = measure(None, None, shares.append)
    assert shares == [pytest.approx(k / 3) for k in (1, 2, 3)]
    assert found["identified"] == 1.0
    assert (found["intervals"], found["zeros"]) == (18, 9)
    assert all(0.7 <= one <= 1.0 for one in found["coverage"])
    assert 1.0 <= found["width"] <= 2.0
    about = {"design": "uniform", "rows": 2_000, "columns": 5, "epsilon": 5.0, "fits": 3}
    (table,) = intervals.item([(about | {"delta": DELTA}, found)]).parts
    (line,) = table.rows
    # Of so few intervals no coverage is shown.
    assert line == ["uniform", "2,000", "5", "5", "1.00", "-", f"{found['width']:.2f}"]
    many = found | {"intervals": 200}
    (table,) = intervals.item([(about, many), (about | {"epsilon": 1.0}, found)]).parts
    (line,) = table.rows
    assert line[3:6] == ["1; 5", "1.00; 1.00", f"-; {found['coverage'][1]:.3f}"]


def test_the_title_of_the_picture_on_the_front_page_is_true():
    found = items.collect(published("utility"), tuple(METHODS))
    compared = [about["label"] for about, _ in found if about["method"] == "none"]
    compared = [label for label in compared if label in items._TITLES]
    assert len(compared) == 4
    for label in compared:
        ours = auc(items._by_epsilon(found, label, ("logistic", "dense"))[1.0])
        assert ours > items._best_other(found, label)[1.0]
