"""Fits in which labels alone are private."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from cli.conftest import done
from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Geometry,
    private_quantiles,
)
from fit.cases import releases
from schemas import Bins, Schema

N, D = 400, 30
RNG = np.random.default_rng(0)
X = sp.csr_array((RNG.random((N, D)) < 0.3).astype(np.float64))
Y = (RNG.random(N) < 0.4).astype(int)


def model(epsilon=1.0, kind=DPLogisticRegression, **options):
    given = {"neighbors": "label"} | options
    if kind in (DPLasso, DPLinearRegression):
        return kind(epsilon, target_bounds=(0, 1), **given)
    return kind(epsilon, **{"classes": [0, 1]} | given)


def test_what_features_say_is_exact_and_costs_nothing():
    rows, labels = sp.vstack([X] * 8).tocsr(), np.tile(Y, 8)
    released = releases(model(50.0, fit_intercept=False).fit(rows, labels))
    assert released["count-counts"].tolist() == [8 * N]
    assert all(released[f"{kind}-share"] == 0.0 for kind in ("count", "scales", "curvature"))
    spent = released["gradients-share"] + released["calibration-share"]
    assert spent == pytest.approx(1.0, abs=1e-12)
    again = releases(model(50.0, fit_intercept=False).fit(rows, 1 - labels))
    np.testing.assert_array_equal(again["scales-energies"], released["scales-energies"])


def test_counts_of_classes_are_noisy_and_their_sum_is_not():
    released = releases(model().fit(X, Y))
    assert released["count-counts"].sum() == pytest.approx(N, abs=1e-6)
    assert released["count-deviation"] > 1.0
    assert released["count-counts"][0] != np.count_nonzero(Y == 0)


def test_the_private_rows_may_be_the_public_ones():
    fitted = model(public_rows=X).fit(X, Y)
    assert fitted.privacy_.public_rows == Geometry.learn(X).description
    assert "the people in these rows" not in fitted.privacy_.text()


@pytest.mark.parametrize(
    "kind",
    [DPLogisticRegression, DPLinearRegression, DPLassoClassifier, DPLasso, DPFrankWolfeClassifier],
)
def test_every_estimator_takes_it_at_the_cost_of_a_replacement(kind):
    """As neighbours that differ in a label also differ in a record that was replaced."""
    own, replaced = (
        model(kind=kind, neighbors=name).fit(X, Y).privacy_ for name in ("label", "replace-one")
    )
    assert own.neighbors == "label"
    name = "gradients" if own.find("gradients") else "vertices"
    assert own.find(name).numbers == pytest.approx(replaced.find(name).numbers, rel=1e-6)
    assert own.find("scales") is None


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"rows_per_person": 3}])
@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
def test_several_classes_have_less_noise_than_for_a_replacement(kind, options):
    """Two labels of a row have residual vectors that are sqrt(2) apart, at most."""
    if kind is DPLassoClassifier and "class_weight" in options:
        options = {"max_weights": 3}
    people, classes = options.get("rows_per_person", 1), [0, 1, 2]
    fitted = kind(1.0, classes=classes, neighbors="label", **options).fit(X, RNG.integers(0, 3, N))
    for name in ("gradients", "calibration"):
        numbers = fitted.privacy_.find(name).numbers
        assert numbers["residual_bound"] == pytest.approx(np.sqrt(2 / 3))
        assert numbers["sensitivity"] == pytest.approx(people * np.sqrt(2))


def test_intervals_need_no_noise_in_the_curvature_of_features():
    """Another label changes an unclipped residual by 1, and its derivative not at all."""
    own = {"row_norm": 3.0, "infer": "all", "epsilon": 30.0}
    found = model(**own).fit(X, Y)
    numbers = found.privacy_.find("inference").numbers
    moved = [numbers[f"sensitivity_{name}"] for name in ("gradient", "curvature", "squares")]
    assert moved == [1.0, 0.0, 1.0]
    assert numbers["share_curvature"] == 0.0
    assert numbers["share_gradient"] + numbers["share_squares"] == pytest.approx(numbers["share"])
    assert releases(found)["moments-curvature_deviation"] == 0.0
    other = model(neighbors="replace-one", **own).fit(X, Y)
    errors = [one.inference_.standard_error for one in (found, other)]
    assert np.isfinite(errors[0]).all()
    assert np.isnan(errors[1]).any(), "noise hides the curvature there"
    # That of a regression depends on targets.
    of_numbers = model(kind=DPLinearRegression, **own).fit(X, Y).privacy_.find("inference")
    assert of_numbers.numbers["sensitivity_curvature"] > 0.0


def page_of(fitted, path):
    fitted.save(path)
    done("report", path, "--out", path.with_suffix(".html"))
    return path.with_suffix(".html").read_text()


def test_statement_report_and_cautions_say_what_is_not_protected(tmp_path):
    fitted = model().fit(X, Y)
    text = fitted.privacy_.text()
    assert "the label of each single record" in text
    assert "given another label" in text
    assert "Features are not protected" in text
    assert "the features of all rows" in text
    assert "column" not in {one.name for one in fitted.privacy_.releases}
    page = page_of(fitted, tmp_path / "m.npz")
    assert "the label of any one row" in page
    assert "It does not protect the features" in page
    (caution,) = fitted.privacy_.cautions(N)
    assert (caution.level, caution.warning) == ("amber", None)
    people = model(rows_per_person=2).fit(X, Y)
    assert "any 2 records of one person were given other labels" in people.privacy_.text()
    assert "the labels of all rows of one person" in page_of(people, tmp_path / "p.npz")


def test_edges_need_no_noise():
    schema = Schema((Bins("age", (30.0, 60.0)),))
    table = pandas.DataFrame({"age": [20.0, 40.0, 70.0]})
    with pytest.raises(ValueError, match="features are public, so edges need no noise"):
        private_quantiles(table, schema, {"age": (0.0, 100.0)}, epsilon=1.0, neighbors="label")
