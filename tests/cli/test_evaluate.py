from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import dplasso
from cli.conftest import found, said
from dplasso.cli.metrics import score
from dplasso.data.files import read_data
from dplasso.estimators.families import GRADIENT_DESCENT


def test_scores_are_scikit_learns(model, held_out):
    scores = found("evaluate", model, held_out, "--binarize")
    assert scores.pop("private") is False
    names = {"n_samples", "accuracy", "auc", "log_loss", "majority_accuracy"}
    assert set(scores) == names | {"classes", "confusion"}
    assert np.trace(scores["confusion"]) == 300 * scores["accuracy"]

    fitted, data = dplasso.load(model), read_data(held_out)
    data.X.data[:] = 1
    probabilities = fitted.predict_proba(data.X)
    assert scores["n_samples"] == 300
    assert scores["accuracy"] == accuracy_score(data.y, fitted.predict(data.X))
    assert scores["auc"] == pytest.approx(roc_auc_score(data.y, probabilities[:, 1]), abs=1e-12)
    assert scores["log_loss"] == pytest.approx(log_loss(data.y, probabilities), abs=1e-12)
    assert scores["majority_accuracy"] == max(np.mean(data.y == 1), np.mean(data.y == -1))
    assert scores["auc"] > 0.9  # the fixture's classes are nearly separated


def test_rows_of_one_class_have_no_auc(model, tmp_path):
    one_class = tmp_path / "one.svm"
    one_class.write_text("+1 1:1\n+1 2:1\n")
    scores = found("evaluate", model, one_class)
    assert scores["auc"] is None
    assert scores["majority_accuracy"] == 1.0
    text = said("evaluate", model, one_class)
    for word in ("accuracy", "majority class", "AUC", "undefined", "log-loss", "not private"):
        assert word in text


def test_log_loss_stays_finite_at_certain_mistakes():
    class Certain:
        classes_ = np.array([0, 1])
        privacy_ = SimpleNamespace(residual_bound=1.0, many_labels=False)
        family = GRADIENT_DESCENT

        def decision_function(self, X):
            return np.array([1000.0, -1000.0])

        def predict(self, X):
            return np.array([1, 0])

    scores = score(Certain(), None, np.array([0, 1]), "here")
    assert (scores["log_loss"], scores["accuracy"], scores["auc"]) == (1000.0, 0.0, 0.0)
