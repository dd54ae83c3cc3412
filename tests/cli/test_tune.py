"""``dplasso tune``, ``plan`` and the private half of ``evaluate``."""

import json
from dataclasses import replace

import pytest

from cli.conftest import done, found, refused, said
from dplasso import load
from dplasso.ledger import Entry, affords, charge_of, new_budget, read_budgets
from dplasso.model.release import digest_of
from dplasso.tuning.plan import plan_budget


def tune(train, *more):
    given = ("--epsilon", 5, "--method", "logistic", "--grid", "n-iter=10,20", "--tries", 2)
    return ("tune", train, *given, "--law", "geometric", *more)


class TestTune:
    def test_the_model_is_written_with_the_statement_of_the_search(self, train, tmp_path):
        model, statement = tmp_path / "m.npz", tmp_path / "s.json"
        report = found(*tune(train, "--model", model, "--statement", statement))
        assert report["best_params"]["n_iter"] in (10, 20)
        assert report["best_score"]["low"] <= report["best_score"]["value"]
        assert report["privacy"]["tries"] == 2
        assert json.loads(statement.read_text()) == report["privacy"]
        assert 4.99 < report["privacy"]["epsilon"] <= 5.0
        # Nothing that grows with the number of tries.
        assert "seconds" not in report

    def test_a_person_is_told_as_much(self, train):
        text = said(*tune(train, "--explain"))
        for words in ("n_iter ", "auc ", "too high", "random number of tries", "nothing (give"):
            assert words in text

    def test_one_charge(self, run, train, tmp_path):
        ledger = tmp_path / "l"
        done("ledger", "init", ledger, "--epsilon", 5, "--delta", 1e-6)
        paid = ("--ledger", ledger, "--model", tmp_path / "m.npz", "--force")
        done(*tune(train, *paid))
        assert len(read_budgets(ledger)[0].entries) == 1
        refused(run(*tune(train, *paid)), "cannot pay for this search")

    def test_a_store(self, train, tmp_path):
        store, model, ledger = tmp_path / "t.store", tmp_path / "m.npz", tmp_path / "l"
        done("convert", train, store)
        done("ledger", "init", ledger, "--epsilon", 9, "--delta", 1e-5)
        done(*tune(store, "--model", model, "--ledger", ledger))
        # The report knows who paid for it, and a private score reads the store.
        done("report", model, "--ledger", ledger, "--out", tmp_path / "r.html")
        assert "has paid for this model" not in (tmp_path / "r.html").read_text()
        assert "interval" in said("evaluate", model, store, "--epsilon", 1)


class TestEvaluate:
    @pytest.mark.parametrize(
        "metric", ["accuracy", "auc", "log_loss", "calibration", "f1", "confusion"]
    )
    def test_a_private_score_tells_nothing_else(self, model, held_out, metric):
        given = ("evaluate", model, held_out, "--binarize", "--epsilon", 3, "--metric", metric)
        report = found(*given)
        assert report.keys() == {
            *("metric", "value", "low", "high", "confidence", "curve", "privacy", "private"),
            *("by_class", "confusion"),
            "model",
        }
        # A digest of what the model itself has released.
        assert report["model"] == digest_of(load(model).model_.release)
        assert report["private"]
        assert report["low"] <= report["value"] <= report["high"]
        assert "epsilon = 3" in said(*given)

    def test_it_is_charged(self, model, held_out, tmp_path):
        ledger = tmp_path / "l"
        done("ledger", "init", ledger, "--epsilon", 1, "--delta", 1e-5)
        given = ("evaluate", model, held_out, "--binarize", "--epsilon", 0.5, "--ledger", ledger)
        assert "of the budget" in said(*given, "--purpose", "a check")
        (entry,) = read_budgets(ledger)[0].entries
        assert entry.charge.purpose == "a check"

    def test_a_regression_is_tuned_and_scored(self, run, tmp_path):
        rows, model = tmp_path / "r.svm", tmp_path / "m.npz"
        rows.write_text("".join(f"{j % 7}.5 {1 + j % 9}:1 20:1\n" for j in range(300)))
        given = ("--method", "linear", "--target-bounds", "0,10", "--grid", "n-iter=5,9")
        tuned = said("tune", rows, "--epsilon", 5, *given, "--law", "geometric", "--model", model)
        assert "mae " in tuned
        score = ("evaluate", model, rows, "--epsilon", 1)
        assert "mae " in said(*score)
        assert "r2 " in said(*score, "--metric", "r2")
        refused(run(*score, "--metric", "auc"), "and this model predicts numbers: take mae, r2")


class TestPlan:
    @pytest.mark.parametrize("method", ["lasso", "logistic"])
    @pytest.mark.parametrize("more", [{}, {"tries": 3.0}, {"refit": 0.3, "encoding": 0.1}])
    def test_a_ledger_takes_the_whole_plan(self, method, more):
        budget = new_budget(None, 2.0, 1e-6, "add-remove")
        parts = plan_budget(2.0, 1e-6, method=method, n_iter=20, **more)
        assert sum(part.share for part in parts) == pytest.approx(1.0)
        charges = [charge_of(part.mechanism) for part in parts]
        for charge in charges:
            assert affords(budget, charge)
            entry = Entry(1, "finished", charge, "", "", "", 0, "", None)
            budget = replace(budget, entries=(*budget.entries, entry))
        # And it is used up.
        assert not affords(budget, max(charges, key=lambda charge: charge.rho))

    def test_people_and_numbers_are_planned_for(self):
        given = {"method": "linear", "target_bounds": (0.0, 9.0), "rows_per_person": 3}
        budget = new_budget(None, 2.0, 1e-6, "add-remove", 3)
        for part in plan_budget(2.0, 1e-6, refit=0.2, encoding=0.1, **given):
            assert part.mechanism.rows_per_person == 3
            charge = charge_of(part.mechanism)
            assert affords(budget, charge)
            entry = Entry(1, "finished", charge, "", "", "", 0, "", None)
            budget = replace(budget, entries=(*budget.entries, entry))
        with pytest.raises(ValueError, match="a search protects single rows"):
            plan_budget(2.0, 1e-6, rows_per_person=2, tries=3.0)
        with pytest.raises(ValueError, match="target_bounds does not go with method='logistic'"):
            plan_budget(2.0, 1e-6, method="logistic", target_bounds=(0.0, 9.0))

    def test_words_and_commands_fit_the_method(self):
        given = ("plan", "--epsilon", 2, "--rows", 30000, "--rows-per-person", 2)
        text = " ".join(said(*given, "--method", "linear", "--target-bounds", "0,100").split())
        for words in (
            "ledger init L --epsilon 2 --delta 1e-06 --rows-per-person 2",
            "--method linear --target-bounds 0,100 --rows-per-person 2 --person-column NAME",
            "in Python: private_score(model, X, y, ",
            "far above what the others",
            "a mean absolute error to within",
        ):
            assert words in text
        few, many = (
            found("plan", "--epsilon", 2, "--rows", 30000, "--method", "logistic", *more)["parts"]
            for more in ((), ("--columns", 120, "--row-entries", 14))
        )
        assert "columns in " in few[0]["finds"]
        assert few[0]["finds"] != many[0]["finds"]

    def test_it_is_printed(self):
        given = ("plan", "--epsilon", 2, "--rows", 30000, "--method", "logistic")
        search, score = found(*given, "--tries", 3)["parts"]
        assert (search["name"], score["name"]) == ("search", "score")
        assert 0 < search["try_epsilon"] < search["epsilon"] < 2
        text = said(*given)
        for words in ("ledger init", "dplasso fit", "dplasso evaluate", "to within"):
            assert words in text
