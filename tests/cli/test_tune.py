"""``dplasso tune``, and the private half of ``evaluate``."""

import pytest

import dplasso
from cli.conftest import charged_to, done, found, new_ledger, refused, said


def tune(train, *more):
    given = ("--epsilon", 5, "--grid", "max-weights=none,3", "--tries", 2)
    return ("tune", train, *given, "--law", "logarithmic", *more)


def test_the_model_is_written_with_the_statement_of_the_search(train, tmp_path):
    model = tmp_path / "m.npz"
    report = found(*tune(train, "--model", model))
    assert report["best_params"]["max_weights"] in (None, 3)
    assert report["best_score"]["low"] <= report["best_score"]["value"]
    assert report["privacy"]["releases"][0]["numbers"]["tries"] == 2
    assert dplasso.load(model).privacy_.to_dict() == report["privacy"]
    assert 4.99 < report["privacy"]["epsilon"] <= 5.0
    # Nothing that grows with the number of tries.
    assert "seconds" not in report
    text = said(*tune(train, "--explain"))
    for words in ("max_weights ", "auc ", "optimistic", "random number of tries", "nothing (give"):
        assert words in text


def test_one_charge_for_a_search_of_a_file_or_a_store(run, train, tmp_path):
    ledger, store, model = new_ledger(tmp_path / "l", 5, 1e-6), tmp_path / "t.store", tmp_path / "m"
    done("convert", train, store)
    paid = ("--ledger", ledger, "--model", model, "--force")
    assert "of the budget" in said(*tune(store, *paid))
    assert len(charged_to(ledger)) == 1
    refused(run(*tune(train, *paid)), "cannot pay for this search")
    # The report knows who paid for it, and a private score reads the store.
    done("report", model, "--ledger", ledger, "--out", tmp_path / "r.html")
    assert "paid for this model" not in (tmp_path / "r.html").read_text()
    assert "interval" in said("evaluate", model, store, "--epsilon", 1)


@pytest.mark.parametrize(
    "metric", ["accuracy", "auc", "log_loss", "calibration", "f1", "confusion"]
)
def test_a_private_score_tells_nothing_else(model, held_out, metric):
    given = ("evaluate", model, held_out, "--binarize", "--epsilon", 3, "--metric", metric)
    report = found(*given)
    assert report.keys() == {
        *("metric", "value", "low", "high", "confidence", "curve", "privacy", "private"),
        *("by_class", "confusion", "model"),
    }
    # A digest of what the model itself has released.
    assert report["model"] == dplasso.load(model).model_.digest
    assert report["private"]
    assert report["low"] <= report["value"] <= report["high"]
    assert "epsilon = 3" in said(*given)


def test_a_private_score_is_charged(model, held_out, tmp_path):
    ledger = new_ledger(tmp_path / "l", 1, 1e-5)
    given = ("evaluate", model, held_out, "--binarize", "--epsilon", 0.5, "--ledger", ledger)
    assert "of the budget" in said(*given, "--purpose", "a check")
    (entry,) = charged_to(ledger)
    assert entry.charge.purpose == "a check"


def test_a_regression_is_tuned_and_scored(run, tmp_path):
    rows, model = tmp_path / "r.svm", tmp_path / "m.npz"
    rows.write_text("".join(f"{j % 7}.5 {1 + j % 9}:1 20:1\n" for j in range(300)))
    given = ("--method", "linear", "--target-bounds", "0,10", "--grid", "max-weights=5,9")
    tuned = said("tune", rows, "--epsilon", 5, *given, "--law", "logarithmic", "--model", model)
    assert "mae " in tuned
    score = ("evaluate", model, rows, "--epsilon", 1)
    assert "mae " in said(*score)
    assert "r2 " in said(*score, "--metric", "r2")
    refused(run(*score, "--metric", "auc"), "but this model predicts numbers: use mae, r2")
