"""``evaluate``: scores that are exact, and private ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import dplasso
from cli.conftest import charged_to, done, found, new_ledger, refused, run_command, said


def test_scores_are_scikit_learns(model, held_out):
    scores = found("evaluate", model, held_out, "--binarize")
    assert scores.pop("private") is False
    names = {"n_samples", "accuracy", "auc", "log_loss", "majority_accuracy"}
    assert set(scores) == names | {"classes", "confusion"}
    assert np.trace(scores["confusion"]) == 300 * scores["accuracy"]

    fitted, (X, y) = dplasso.load(model), load_svmlight_file(str(held_out), n_features=30)
    X.data[:] = 1
    probabilities = fitted.predict_proba(X)
    assert scores["n_samples"] == 300
    assert scores["accuracy"] == accuracy_score(y, fitted.predict(X))
    assert scores["auc"] == pytest.approx(roc_auc_score(y, probabilities[:, 1]), abs=1e-12)
    assert scores["log_loss"] == pytest.approx(log_loss(y, probabilities), abs=1e-12)
    assert scores["majority_accuracy"] == max(np.mean(y == 1), np.mean(y == -1))
    assert scores["auc"] > 0.9  # the fixture's classes are nearly separated


def test_rows_of_one_class_have_no_auc(model, tmp_path):
    one_class = tmp_path / "one.svm"
    one_class.write_text("+1 1:1\n+1 2:1\n")
    scores = found("evaluate", model, one_class)
    assert scores["auc"] is None
    assert scores["majority_accuracy"] == 1.0
    assert "undefined" in said("evaluate", model, one_class)


def test_log_loss_stays_finite_at_certain_mistakes(tmp_path):
    model, rows = tmp_path / "m.npz", tmp_path / "rows.svm"
    X = csr_array(np.eye(2)[np.arange(400) % 2])
    dplasso.DPFrankWolfeClassifier(float("inf"), l1_radius=3e3, n_iter=50).fit(
        X, np.arange(400) % 2
    ).save(model)
    rows.write_text("1 1:1\n0 2:1\n")
    scores = found("evaluate", model, rows)
    assert 300 < scores["log_loss"] < 3000
    assert (scores["accuracy"], scores["auc"]) == (0.0, 0.0)


def test_two_models_are_compared_on_the_same_rows(model, held_out, train, tmp_path):
    weak, ledger = tmp_path / "weak.npz", tmp_path / "team.ledger"
    done("fit", train, "--epsilon", 0.001, "--binarize", "--classes", "1,-1", "--model", weak)
    new_ledger(ledger, 5.0, 1e-5)
    given = (model, held_out, "--epsilon", 2, "--against", weak)
    scores = found("evaluate", *given, "--ledger", ledger)
    assert (scores["better"], scores["metric"], scores["private"]) == ("a", "accuracy", True)
    assert scores["low"] < scores["value"] < scores["high"]
    assert scores["ledger"]["epsilon_left"] < 5.0
    assert scores["not_for_release"] == ["ledger"]
    text = said("evaluate", *given)
    for words in ("how much better MODEL is", "noise included", "epsilon = 2"):
        assert words in text
    refused(run_command("evaluate", *given[:2], "--against", weak), "--against", "--epsilon")


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_a_private_score_tells_nothing_else_and_is_charged(model, held_out, tmp_path, metric):
    ledger = new_ledger(tmp_path / "l", 9, 1e-5)
    given = ("evaluate", model, held_out, "--binarize", "--epsilon", 3, "--metric", metric)
    report = found(*given)
    assert report.keys() == {
        *("metric", "value", "low", "high", "confidence", "privacy", "private"),
        *("by_class", "model"),
    }
    # A digest of what the model itself has released.
    assert report["model"] == dplasso.load(model).model_.digest
    assert report["private"]
    assert report["low"] <= report["value"] <= report["high"]
    told = said(*given, "--ledger", ledger, "--purpose", "a check")
    assert "epsilon = 3" in told
    assert "of the budget" in told.partition("Do not release")[2]
    (entry,) = charged_to(ledger)
    assert entry.charge.purpose == "a check"
