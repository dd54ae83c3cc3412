"""``dplasso budget`` and ``plan``."""

import pytest

import dplasso
from cli.conftest import charged_to, done, found, new_ledger, refused, run_command, said


def budget(*more, epsilon=1):
    return ("budget", "--epsilon", epsilon, *more)


def test_the_statement_is_that_of_the_library():
    cost = {"method": "frank-wolfe", "n_iter": 50, "neighbors": "replace-one"}
    options = ("--method", "frank-wolfe", "--n-iter", 50, "--neighbors", "replace-one")
    expected = dplasso.privacy_cost(1.0, 1e-6, **cost).to_dict()
    assert found(*budget(*options)) == {"privacy": expected}
    # A regression is by noisy gradient descent unless another method is named.
    linear = found(*budget("--target-bounds", "0,1"))
    expected = dplasso.privacy_cost(1.0, 1e-6, method="linear").to_dict()
    assert found(*budget("--method", "linear")) == linear == {"privacy": expected}
    without = found(*budget("--rows", 100, "--columns", 10, epsilon="inf"))
    assert without["privacy"]["is_private"] is False
    # JSON has no infinities.
    assert (without["privacy"]["mu"], without["findable"][-1]["epsilon"]) == ("inf", "inf")
    numbers = said(*budget("--target-bounds", "0,9", "--columns", 1000, "--rows", 10**4))
    assert "so many more rows far above what the others predict than far below" in numbers


@pytest.mark.parametrize("method", ["lasso", "logistic"])
def test_rows_and_columns_say_what_can_be_found(method):
    asked = budget("--rows", 30_000, "--columns", 100_000, "--method", method, epsilon=2)
    findable = found(*asked)["findable"]
    assert [row["epsilon"] for row in findable] == [0.1, 0.3, 1, 2, 3, 10]
    rows = [row["rows"] for row in findable]
    assert rows == sorted(rows, reverse=True)
    expected = dplasso.weakest_association(2.0, 1e-6, 30_000, 100_000, method=method)
    assert (findable[3]["rows"], findable[3]["part"]) == (expected.rows, expected.part)
    assert "Give --rows N and --columns D" in said(*budget("--method", "lasso"))
    few = said(*budget("--rows", 50, "--columns", 100_000, "--method", method, epsilon=0.1))
    assert "nothing can be found" in few


# --- plan ----------------------------------------------------------------------------------------

PLAN = ("plan", "--epsilon", 2, "--rows", 30000)


@pytest.mark.parametrize(("method", "more"), [("lasso", ()), ("logistic", ("--score", 0.4))])
def test_a_ledger_takes_the_whole_plan(tmp_path, method, more):
    ledger = new_ledger(tmp_path / "l", 2, 1e-6)
    parts = found(*PLAN, "--method", method, *more)["parts"]
    assert sum(part["share"] for part in parts) == pytest.approx(1.0)
    spend = ("ledger", "spend", ledger, "--method", method, "--epsilon")
    fits = [part for part in parts if part["name"] == "fit"]
    for part in fits:
        done(*spend, repr(part["epsilon"]))
    # The shares of the others are left, and no more.
    rest = 1.0 - sum(part["share"] for part in fits)
    report = found("ledger", "show", ledger)["datasets"][0]
    assert 1.0 - report["share_spent"] == pytest.approx(rest, rel=1e-4)
    refused(run_command(*spend, repr(fits[0]["epsilon"])), "cannot pay")
    assert len(charged_to(ledger)) == len(fits)


def test_words_fit_the_method():
    text = said(*PLAN, "--method", "linear", "--target-bounds", "0,100")
    assert "far above what the others" in text
    assert "a mean absolute error to within" in text
    few, many = (found(*PLAN, *more)["parts"][0]["finds"] for more in ((), ("--columns", 120)))
    assert "columns in " in few != many
    infer = said("plan", "--epsilon", 1, "--columns", 5, "--infer", "--rows", 300)
    assert "identify almost no coefficient" in infer
    numbers = run_command(*PLAN, "--method", "logistic", "--target-bounds", "0,9")
    refused(numbers, "--target-bounds cannot be combined with --method logistic")
