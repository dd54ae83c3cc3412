"""Private scores of ``evaluate``."""

import pytest

import dplasso
from cli.conftest import charged_to, done, found, new_ledger, refused, said


@pytest.mark.parametrize("metric", ["accuracy", "auc", "log_loss", "calibration", "f1"])
def test_a_private_score_tells_nothing_else(model, held_out, metric):
    given = ("evaluate", model, held_out, "--binarize", "--epsilon", 3, "--metric", metric)
    report = found(*given)
    assert report.keys() == {
        *("metric", "value", "low", "high", "confidence", "curve", "privacy", "private"),
        *("by_class", "model"),
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


def test_a_private_score_of_a_regression(run, tmp_path):
    rows, model = tmp_path / "r.svm", tmp_path / "m.npz"
    rows.write_text("".join(f"{j % 7}.5 {1 + j % 9}:1 20:1\n" for j in range(300)))
    given = ("--method", "linear", "--target-bounds", "0,10")
    done("fit", rows, "--epsilon", 5, *given, "--model", model)
    score = ("evaluate", model, rows, "--epsilon", 1)
    assert "mae " in said(*score)
    assert "r2 " in said(*score, "--metric", "r2")
    refused(run(*score, "--metric", "auc"), "but this model predicts numbers: use mae, r2")
