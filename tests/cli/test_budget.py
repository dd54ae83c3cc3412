import json
import math

import pytest

import dplasso
from dplasso.gradient_descent.schedule import AVERAGED


def test_json_table_agrees_with_the_library(run):
    result = run("budget", "--epsilon", "1", "--n-iter", "50", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert set(report) == {"privacy", "noise_scale", "table"}
    assert report["privacy"] == dplasso.privacy_cost(1.0, 1e-6, 50).to_dict()
    assert [row["n_iter"] for row in report["table"]] == [10, 30, 50, 100, 300, 1000, 4000]
    for row in report["table"]:
        assert set(row) == {"n_iter", "eps0", "noise_scale"}
        assert row["eps0"] == dplasso.privacy_cost(1.0, 1e-6, row["n_iter"]).eps0


def test_noise_scale_is_one_over_the_exponent_scale(run):
    from dplasso.privacy.mechanisms import build_mechanism

    for neighbors in ("add-remove", "replace-one"):
        arguments = ("--feature-bound", "3", "--neighbors", neighbors, "--n-iter", "20", "--json")
        report = json.loads(run("budget", "--epsilon", "0.5", *arguments).stdout)
        mechanism = build_mechanism(
            epsilon=0.5,
            delta=1e-6,
            n_iter=20,
            neighbors=neighbors,
            feature_bound=3.0,
            residual_bound=0.5,
        )
        assert report["noise_scale"] == pytest.approx(1 / mechanism.exponent_scale, rel=1e-12)


def test_features_add_the_gradient_that_stands_out(run):
    report = json.loads(run("budget", "--epsilon", "1", "--features", "1000", "--json").stdout)
    for row in report["table"]:
        expected = row["noise_scale"] * math.log(2000)
        assert row["findable_gradient"] == pytest.approx(expected, rel=1e-12)


def test_text_output(run):
    text = " ".join(run("budget", "--epsilon", "1", "--features", "1000").stdout.split())
    assert "Differentially private with epsilon = 1" in text
    assert "4,000" in text
    assert "among 1,000 columns" in text


def test_no_privacy_means_no_noise(run):
    report = json.loads(run("budget", "--epsilon", "inf", "--json").stdout)
    assert report["noise_scale"] == 0
    assert report["privacy"]["is_private"] is False


def test_gradient_descent_is_told_by_its_standard_error(run):
    asked = ("budget", "--method", "logistic", "--epsilon", "0.5", "--json")
    report = json.loads(run(*asked).stdout)
    assert report["privacy"] == dplasso.privacy_cost(0.5, 1e-6, method="logistic").to_dict()
    assert report["privacy"]["steps"] == 300
    table = report["table"]
    assert [row["epsilon"] for row in table] == [0.1, 0.3, 0.5, 1, 3, 10]
    # Training stops where its noise has moved a margin by 1/2; the average of the last iterates
    # has less of it.
    expected = 0.5 * math.sqrt(1 - 2 * AVERAGED / 3)
    for row in table:
        assert row["standard_error"] == pytest.approx(expected, rel=0.02)
    findable = [row["findable_gradient"] for row in table]
    assert findable == sorted(findable, reverse=True)
    # With so many records h is limited by 8 / N.
    many = json.loads(run(*asked, "--n-records", 10**7).stdout)["table"]
    assert many[0]["standard_error"] < 0.2
    person = json.loads(run(*asked, "--rows-per-person", 3).stdout)
    assert person["noise_scale"] == pytest.approx(3 * report["noise_scale"])
    text = " ".join(run(*asked[:-1]).stdout.split())
    assert "each that speaks for the column gives at most 0.5/sqrt(R)" in text


def test_numbers_and_classes_are_known(run):
    linear = json.loads(run("budget", "--epsilon", 1, "--method", "linear", "--json").stdout)
    assert linear["privacy"] == dplasso.privacy_cost(1.0, 1e-6, method="linear").to_dict()
    text = " ".join(run("budget", "--epsilon", 1, "--method", "linear").stdout.split())
    assert "gives at most 0.25/sqrt(R)" in text
    assert "halves of the targets' interval" in text
    ten = ("budget", "--epsilon", 1, "--n-classes", 10, "--columns", 1000, "--rows", 10**4)
    report = json.loads(run(*ten, "--json").stdout)
    for row in report["table"]:
        assert row["findable_gradient"] == pytest.approx(row["noise_scale"] * math.log(20_000))
    told = " ".join(
        run("budget", "--epsilon", 1, "--target-bounds", "0,9", *ten[5:]).stdout.split()
    )
    assert "so many more rows far above what the others predict than far below" in told


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_rows_and_columns_say_what_can_be_found(run, method):
    asked = ("budget", "--epsilon", 2, "--rows", 30_000, "--columns", 100_000, "--method", method)
    found = json.loads(run(*asked, "--json").stdout)["findable"]
    assert [one["epsilon"] for one in found] == [0.1, 0.3, 1, 2, 3, 10]
    rows = [one["rows"] for one in found]
    assert rows == sorted(rows, reverse=True)
    expected = dplasso.weakest_association(2.0, 1e-6, 30_000, 100_000, method=method)
    assert (found[3]["rows"], found[3]["part"]) == (expected.rows, expected.part)
    text = " ".join(run(*asked).stdout.split())
    assert "Of 100,000 columns in 30,000 rows: one that occurs in so many more rows" in text
    assert f"{100 * expected.part:.2g} %" in text


def test_where_nothing_can_be_found_it_says_so(run):
    text = run("budget", "--epsilon", 0.1, "--rows", 50, "--columns", 100_000).stdout
    assert "nothing can be found" in text
