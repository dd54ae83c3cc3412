from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline

import dplasso
from cli.conftest import found, refused, run_command, said
from dplasso.cli.metrics import score
from dplasso.data.formats import read_data
from dplasso.data.tables.batches import TableReader
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


def test_tables_with_a_column_for_each_label(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ages = rng.integers(20, 80, 900)
    there = (ages[:, np.newaxis] + rng.normal(0.0, 10.0, (900, 3)) > [30, 50, 70]).astype(int)
    names = ["asthma", "gout", "flu"]
    texts = [f"decade{age // 10}" for age in ages]
    last = dplasso.DPLogisticRegression(5.0, classes=names, random_state=0)
    pipeline = make_pipeline(HashingVectorizer(n_features=64), last).fit(texts, there)
    model, table = tmp_path / "model.npz", tmp_path / "rows.csv"
    dplasso.save(pipeline, model)

    def write(*columns):
        lines = [",".join(("text", *columns))]
        rows = zip(texts, there.tolist(), strict=True)
        lines += [",".join(map(str, (text, *row))) for text, row in rows]
        table.write_text("\n".join(lines) + "\n")

    read, batches = [], TableReader.batches
    counted = lambda reader, *given: read.append(reader) or batches(reader, *given)  # noqa: E731
    monkeypatch.setattr(TableReader, "batches", counted)
    write(*names)
    scores = found("evaluate", model, table)
    # Once for the labels, all of them, and once for the rows.
    assert len(read) == 2
    given = pipeline.predict_proba(texts)
    assert scores["n_samples"] == 900
    assert scores["auc"] == pytest.approx(roc_auc_score(there, given))
    assert scores["accuracy"] == np.mean((given > 0.5) == there)
    losses = [log_loss(there[:, k], given[:, k]) for k in range(3)]
    assert scores["log_loss"] == pytest.approx(np.mean(losses))
    assert [one["label"] for one in scores["by_class"]] == names
    assert [one["rows"] for one in scores["by_class"]] == there.sum(axis=0).tolist()
    assert "macro AUC" in said("evaluate", model, table)
    private = found("evaluate", model, table, "--epsilon", "20")
    assert private["low"] < scores["auc"] < private["high"]
    assert [one["label"] for one in private["by_class"]] == names

    write("a", "b", "c")
    assert found("evaluate", model, table, "--label-column", "a,b,c") == scores
    two = run_command("evaluate", model, table, "--label-column", "a,b")
    refused(two, "one column for each of 3 labels")
    other = run_command("evaluate", model, table, "--label-column", "a,b,c", "--label-map", "1=1")
    row = 1 + int(np.argmin(there[:, 0]))
    refused(other, f"column 'a': the label of row {row} is not in the label map")
    refused(run_command("evaluate", model, table), "asthma")
    rows = tmp_path / "rows.svm"
    rows.write_text("1 1:1\n")
    refused(run_command("evaluate", model, rows), "give a table with a column for each label")
