import math

import pytest

import dplasso
from cli.conftest import found, said
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.mechanisms.gaussian import COUNT_SHARE


def budget(*more, epsilon=1):
    return ("budget", "--epsilon", epsilon, *more)


LASSO = ("--method", "lasso")


def test_json_table_agrees_with_the_library():
    report = found(*budget(*LASSO, "--n-iter", "50"))
    assert set(report) == {"privacy", "noise_scale", "table"}
    assert report["privacy"] == dplasso.privacy_cost(1.0, 1e-6, 50).to_dict()
    assert [row["n_iter"] for row in report["table"]] == [10, 30, 50, 100, 300, 1000, 4000]
    for row in report["table"]:
        assert set(row) == {"n_iter", "eps0", "noise_scale"}
        assert row["eps0"] == dplasso.privacy_cost(1.0, 1e-6, row["n_iter"]).eps0


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_noise_scale_is_one_over_the_exponent_scale(neighbors):
    arguments = (*LASSO, "--feature-bound", "3", "--neighbors", neighbors, "--n-iter", "20")
    report = found(*budget(*arguments, epsilon=0.5))
    settings = {"epsilon": 0.5, "delta": 1e-6, "n_iter": 20, "neighbors": neighbors}
    mechanism = build_mechanism(**settings, feature_bound=3.0, residual_bound=0.5)
    # The counts have a hundredth of the budget.
    scale = mechanism.exponent_scale * math.sqrt(1.0 - COUNT_SHARE)
    assert report["noise_scale"] == pytest.approx(1 / scale, rel=1e-4)


def test_features_add_the_gradient_that_stands_out():
    for row in found(*budget(*LASSO, "--features", "1000"))["table"]:
        expected = row["noise_scale"] * math.log(2000)
        assert row["findable_gradient"] == pytest.approx(expected, rel=1e-12)
    text = said(*budget(*LASSO, "--features", "1000"))
    for words in ("Differentially private with epsilon = 1", "4,000", "among 1,000 columns"):
        assert words in text


def test_no_privacy_means_no_noise():
    report = found(*budget(epsilon="inf"))
    assert report["noise_scale"] == 0
    assert report["privacy"]["is_private"] is False


def test_gradient_descent_is_told_by_its_standard_error():
    # Unless told, a fit is by noisy gradient descent.
    asked = budget(epsilon=0.5)
    report = found(*asked)
    assert report["privacy"] == dplasso.privacy_cost(0.5, 1e-6, method="logistic").to_dict()
    assert report["privacy"]["steps"] == 400
    table = report["table"]
    assert [row["epsilon"] for row in table] == [0.1, 0.3, 0.5, 1, 3, 10]
    # Training stops where its noise has moved a margin by 1/2.
    for row in table:
        assert row["standard_error"] == pytest.approx(0.5, rel=0.02)
    findable = [row["findable_gradient"] for row in table]
    assert findable == sorted(findable, reverse=True)
    # With so many records, and nothing known of their columns, curvature limits the steps.
    assert found(*asked, "--n-records", 10**8)["table"][0]["standard_error"] < 0.2
    person = found(*asked, "--rows-per-person", 3)
    assert person["noise_scale"] == pytest.approx(3 * report["noise_scale"])
    assert "each that speaks for the column gives at most 0.5/sqrt(R)" in said(*asked)


def test_numbers_and_classes_are_known():
    linear = budget("--method", "linear")
    told = found(*budget("--target-bounds", "0,1"))
    assert (
        found(*linear)["privacy"]
        == told["privacy"]
        == dplasso.privacy_cost(1.0, 1e-6, method="linear").to_dict()
    )
    text = said(*linear)
    assert "gives at most 0.25/sqrt(R)" in text
    assert "halves of the targets' interval" in text
    size = ("--columns", 1000, "--rows", 10**4)
    for row in found(*budget(*LASSO, "--n-classes", 10, *size))["table"]:
        assert row["findable_gradient"] == pytest.approx(row["noise_scale"] * math.log(20_000))
    told = said(*budget("--target-bounds", "0,9", *size))
    assert "so many more rows far above what the others predict than far below" in told


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_rows_and_columns_say_what_can_be_found(method):
    asked = budget("--rows", 30_000, "--columns", 100_000, "--method", method, epsilon=2)
    findable = found(*asked)["findable"]
    assert [one["epsilon"] for one in findable] == [0.1, 0.3, 1, 2, 3, 10]
    rows = [one["rows"] for one in findable]
    assert rows == sorted(rows, reverse=True)
    expected = dplasso.weakest_association(2.0, 1e-6, 30_000, 100_000, method=method)
    assert (findable[3]["rows"], findable[3]["part"]) == (expected.rows, expected.part)
    text = said(*asked)
    assert "Of 100,000 columns in 30,000 rows: one that occurs in so many more rows" in text
    assert f"{100 * expected.part:.2g} %" in text


def test_where_nothing_can_be_found_it_says_so():
    text = said(*budget("--rows", 50, "--columns", 100_000, epsilon=0.1))
    assert "nothing can be found" in text
