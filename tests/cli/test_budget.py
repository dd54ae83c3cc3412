"""``dplasso budget`` and ``plan``."""

import math
from dataclasses import asdict

import pytest

import dplasso
from cli.conftest import charged_to, done, found, new_ledger, refused, run_command, said
from dplasso.estimators.cost import plan_intervals


def budget(*more, epsilon=1):
    return ("budget", "--epsilon", epsilon, *more)


DRAWS = ("--method", "frank-wolfe")


def test_the_table_of_draws_agrees_with_the_library():
    report = found(*budget(*DRAWS, "--n-iter", "50", "--features", "1000"))
    assert set(report) == {"privacy", "noise_scale", "table"}
    cost = {"method": "frank-wolfe", "n_iter": 50}
    assert report["privacy"] == dplasso.privacy_cost(1.0, 1e-6, **cost).to_dict()
    assert [row["n_iter"] for row in report["table"]] == [10, 30, 50, 100, 300, 1000, 4000]
    for row in report["table"]:
        stated = dplasso.privacy_cost(1.0, 1e-6, **cost | {"n_iter": row["n_iter"]})
        assert row["eps0"] == stated.number("eps0")
        assert row["findable_gradient"] == pytest.approx(row["noise_scale"] * math.log(2000))
    text = said(*budget(*DRAWS, "--features", "1000"))
    for words in ("Differentially private with epsilon = 1", "4,000", "among 1,000 columns"):
        assert words in text
    for row in found(*budget(*DRAWS, "--n-classes", 10, "--columns", 1000))["table"]:
        assert row["findable_gradient"] == pytest.approx(row["noise_scale"] * math.log(20_000))


@pytest.mark.parametrize(("neighbors", "moved"), [("add-remove", 1.5), ("replace-one", 3.0)])
def test_noise_scale_is_twice_the_sensitivity_over_eps0(neighbors, moved):
    arguments = (*DRAWS, "--feature-bound", "3", "--neighbors", neighbors, "--n-iter", "20")
    report = found(*budget(*arguments, epsilon=0.5))
    (row,) = [row for row in report["table"] if row["n_iter"] == 20]
    assert report["noise_scale"] == row["noise_scale"] == pytest.approx(2.0 * moved / row["eps0"])


def test_no_privacy_means_no_noise():
    for method in ((), DRAWS):
        report = found(*budget(*method, epsilon="inf"))
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
    assert found(*asked, "--rows", 10**8)["table"][0]["standard_error"] < 0.2
    person = found(*asked, "--rows-per-person", 3)
    assert person["noise_scale"] == pytest.approx(3 * report["noise_scale"])
    assert "equal size contributes at most 0.5/sqrt(R)" in said(*asked)


def test_numbers_are_known():
    linear = budget("--method", "linear")
    told = found(*budget("--target-bounds", "0,1"))["privacy"]
    stated = dplasso.privacy_cost(1.0, 1e-6, method="linear").to_dict()
    assert found(*linear)["privacy"] == told == stated
    text = said(*linear)
    assert "contributes at most 0.25/sqrt(R)" in text
    assert "halves of the targets' interval" in text
    told = said(*budget("--target-bounds", "0,9", "--columns", 1000, "--rows", 10**4))
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
    assert "Of 100,000 columns in 30,000 rows, one that occurs in so many more rows" in text
    assert f"{100 * expected.part:.2g} %" in text
    assert "Give --rows N and --columns D" in said(*budget("--method", "lasso"))
    few = said(*budget("--rows", 50, "--columns", 100_000, "--method", method, epsilon=0.1))
    assert "nothing can be found" in few


# --- plan ----------------------------------------------------------------------------------------

PLAN = ("plan", "--epsilon", 2, "--rows", 30000)


@pytest.mark.parametrize("method", ["lasso", "logistic"])
@pytest.mark.parametrize("more", [(), ("--refit", 0.3, "--encoding", 0.1)])
def test_a_ledger_takes_the_whole_plan(tmp_path, method, more):
    ledger = new_ledger(tmp_path / "l", 2, 1e-6)
    parts = found(*PLAN, "--method", method, *more)["parts"]
    assert sum(part["share"] for part in parts) == pytest.approx(1.0)
    spend = ("ledger", "spend", ledger, "--method", method, "--epsilon")
    fits = [part for part in parts if part["name"] in ("fit", "refit")]
    for part in fits:
        done(*spend, repr(part["epsilon"]))
    # The shares of the others are left, and no more.
    rest = 1.0 - sum(part["share"] for part in fits)
    report = found("ledger", "show", ledger)["datasets"][0]
    assert 1.0 - report["share_spent"] == pytest.approx(rest, rel=1e-4)
    refused(run_command(*spend, repr(fits[0]["epsilon"])), "cannot pay")
    assert len(charged_to(ledger)) == len(fits)


def test_words_and_commands_fit_the_method():
    given = (*PLAN, "--rows-per-person", 2, "--method", "linear", "--target-bounds", "0,100")
    text = said(*given)
    for words in (
        "ledger init L --epsilon 2 --delta 1e-06 --rows-per-person 2",
        "--method linear --target-bounds 0,100 --rows-per-person 2 --person-column NAME",
        "in Python: private_score(model, X, y, ",
        *("far above what the others", "a mean absolute error to within"),
    ):
        assert words in text
    table = ("--columns", 120, "--row-entries", 14)
    few, many = (found(*PLAN, *more)["parts"][0]["finds"] for more in ((), table))
    assert "columns in " in few != many


def test_a_search_is_planned_for_and_printed():
    search, score = found(*PLAN, "--tries", 3)["parts"]
    assert (search["name"], score["name"]) == ("search", "score")
    assert 0 < search["try_epsilon"] < search["epsilon"] < 2
    text = said(*PLAN)
    for words in ("ledger init", "dplasso fit", "dplasso evaluate", "to within"):
        assert words in text
    people = run_command(*PLAN, "--tries", 3, "--rows-per-person", 2)
    refused(people, "--rows-per-person does not go with --tries: a search protects single rows")
    numbers = run_command(*PLAN, "--method", "logistic", "--target-bounds", "0,9")
    refused(numbers, "--target-bounds does not go with --method logistic")
    assert "A fit on 100 partitions" in said("plan", "--rows", 10**9, "--workers", 100)


class TestIntervals:
    PLAN = ("plan", "--epsilon", 1, "--columns", 5, "--infer")

    def test_they_are_those_of_the_library_at_the_budget_of_the_fit(self):
        report = found(*self.PLAN, "--rows", 30_000, "--effect", 0.2, "--neighbors", "replace-one")
        (fit,) = [part for part in report["parts"] if part["name"] == "fit"]
        budget = fit["epsilon"], fit["delta"]
        planned = plan_intervals(*budget, 30_000, 5, effect=0.2, neighbors="replace-one")
        assert report["intervals"] == asdict(planned)
        text = said(*self.PLAN, "--rows", 30_000, "--effect", 0.2)
        assert "95 % intervals of the fit with --infer all: about" in text
        assert "Detecting an effect of 0.2 with probability 0.8 takes about" in text
        assert "identify almost no coefficient" in said(*self.PLAN, "--rows", 300)
        assert "intervals" not in found("plan", "--epsilon", 1, "--rows", 300)

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (("--tries", 3), "leave --tries out"),
            (("--method", "lasso"), "--infer is for the methods logistic"),
            (("--n-classes", 3), "--infer is for the methods logistic"),
            (("--power", 1.5), "--power must be between 0 and 1"),
        ],
    )
    def test_what_has_none_is_refused(self, more, message):
        result = run_command(*self.PLAN, "--rows", 3_000, *more)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.replace("│", " ").split())
        alone = run_command("plan", "--epsilon", 1, "--rows", 300, "--effect", 1)
        assert "give --infer too" in " ".join(alone.stderr.replace("│", " ").split())
