"""More than two classes, and numbers, on the command line."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

import dplasso
from cli.conftest import done, found, refused, run_command, said


@pytest.fixture
def rows(tmp_path):
    """Write rows whose first columns name their class, with classes or numbers as labels."""
    rng = np.random.default_rng(0)

    def write(name, task):
        lines = []
        for _ in range(300):
            k = int(rng.integers(3))
            label = k + 1 if task == "classes" else 10.0 * k + rng.normal()
            entries = sorted({k + 1, *(4 + rng.integers(6, size=2)).tolist()})
            lines.append(f"{label} " + " ".join(f"{j}:1" for j in entries))
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "logistic", "--max-weights", "3"),
        ("--method", "lasso", "--classes", "3,2,1"),
        ("--features", "1000"),
    ],
)
def test_classes(rows, tmp_path, options):
    train, test = rows("train.svm", "classes"), rows("test.svm", "classes")
    path, fit = tmp_path / "model.npz", ("fit", train, "--epsilon", "5", *options)
    report = found(*fit, "--test", test, "--model", path, "--seed", "1")
    assert report["test"]["auc"] > 0.85
    assert {one["class"] for one in report["heaviest"]} <= {1.0, 2.0, 3.0}
    assert report["privacy"]["n_classes"] == 3
    scores = found("evaluate", path, test)
    assert scores["auc"] == report["test"]["auc"]
    assert np.array(scores["confusion"]).shape == (3, 3)
    assert np.sum(scores["confusion"]) == 300
    assert np.trace(scores["confusion"]) / 300 == pytest.approx(scores["accuracy"])
    assert scores["log_loss"] < np.log(3)
    score = ("evaluate", path, test, "--epsilon", "20", "--metric")
    assert len(found(*score, "auc")["by_class"]) == 3
    refused(run_command(*score, "mae"), "is for numbers, but this model predicts")
    shown = said("evaluate", path, test)
    assert "macro AUC" in shown
    assert "│ 3 " in shown
    assert set(said("predict", path, test).split()) <= {"1", "2", "3"}
    order = options[-1].split(",") if "--classes" in options else ["1", "2", "3"]
    assert done("predict", path, test, "--proba").stdout.splitlines()[0].split() == order
    # Of 3,000 weights.
    assert ("(8 by chance)" in said(*fit)) == ("--features" in options)


def test_a_model_of_many_labels_predicts_and_is_scored_in_python(rows, tmp_path):
    data, path = rows("rows.svm", "classes"), tmp_path / "model.npz"
    X = csr_array(load_svmlight_file(str(data))[0])
    Y = (np.asarray(X[:, :2].todense()) > 0).astype(int)
    model = dplasso.DPLogisticRegression(20.0, classes=["fünf", "a b"]).fit(X, Y)
    model.save(path)
    predicted = np.array(said("predict", path, data).split(), dtype=int).reshape(-1, 2)
    np.testing.assert_array_equal(predicted, model.predict(X))
    head, *numbers = done("predict", path, data, "--proba").stdout.splitlines()
    assert head == "fünf 'a b'"
    given = np.array([line.split() for line in numbers], dtype=float)
    np.testing.assert_allclose(given, model.predict_proba(X), rtol=1e-6)
    for options in (), ("--epsilon", "1"):
        scored = run_command("evaluate", path, data, *options)
        refused(scored, "predicts 2 labels of each row: score it in Python")
    assert "each row may have any subset" in said("show", path)


@pytest.mark.parametrize("method", ["lasso", "linear"])
def test_numbers(rows, tmp_path, method):
    train, test = rows("train.svm", "numbers"), rows("test.svm", "numbers")
    path, options = tmp_path / "model.npz", ("--method", method, "--target-bounds=-5,25")
    fit = ("fit", train, "--epsilon", "5", *options, "--seed", "1", "--test", test)
    report = found(*fit, "--model", path)
    assert report["test"]["r2"] > 0.5
    assert report["test"]["mae"] < 5.0
    assert report["privacy"]["target_bounds"] == [-5.0, 25.0]
    assert report["test"].items() <= found("evaluate", path, test).items()
    shown = said("evaluate", path, test)
    assert "R^2" in shown
    assert "mean absolute error" in shown
    score = ("evaluate", path, test, "--epsilon", 1)
    assert "mae " in said(*score)
    refused(run_command(*score, "--metric", "auc"), "but this model predicts numbers: use mae")
    huge = tmp_path / "huge.svm"
    huge.write_text("1e300 1:1\n0 2:1\n")
    told = done("evaluate", path, huge)
    assert "5e+299" in told.stdout
    assert "overflow" not in told.stderr
    predicted = np.array(said("predict", path, test).split(), dtype=float)
    model = dplasso.load(path)
    assert type(model) is (dplasso.DPLasso if method == "lasso" else dplasso.DPLinearRegression)
    assert predicted.size == 300
    assert np.all(np.abs(predicted - 10.0) <= 15.0)
    assert "R^2" in said(*fit)
    assert "numbers from -5 to 25" in said("show", path)
    refused(
        run_command("predict", path, test, "--proba"), "predicts numbers, not probabilities", code=2
    )
