"""More than two classes, and numbers, on the command line."""

import json

import numpy as np
import pytest

import dplasso


@pytest.fixture
def rows(tmp_path):
    """Write rows whose first columns name their class, with classes or numbers as labels."""
    rng = np.random.default_rng(0)

    def write(name, task, n_rows=300):
        lines = []
        for _ in range(n_rows):
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
        ("--method", "logistic"),
        ("--method", "logistic", "--max-weights", "3"),
        ("--method", "logistic", "--classes", "3,2,1"),
        ("--method", "lasso", "--classes", "3,2,1"),
        ("--n-iter", "4"),
    ],
)
def test_classes(run, rows, tmp_path, options):
    train, test = rows("train.svm", "classes"), rows("test.svm", "classes")
    path = tmp_path / "model.npz"
    found = run(
        "fit", train, "--epsilon", "5", "--test", test, "--model", path, "--seed", "1", *options,
        "--json",
    )  # fmt: skip
    report = json.loads(found.stdout)
    assert report["test"]["auc"] > 0.85
    assert {one["class"] for one in report["heaviest"]} <= {1.0, 2.0, 3.0}
    assert report["privacy"]["n_classes"] == 3
    scores = json.loads(run("evaluate", path, test, "--json").stdout)
    assert scores["auc"] == report["test"]["auc"]
    assert np.array(scores["confusion"]).shape == (3, 3)
    assert np.sum(scores["confusion"]) == 300
    assert np.trace(scores["confusion"]) / 300 == pytest.approx(scores["accuracy"])
    assert scores["log_loss"] < np.log(3)
    shown = run("evaluate", path, test).stdout
    assert "macro AUC" in shown
    assert "│ 3 " in shown
    labels = run("predict", path, test).stdout.split()
    assert set(labels) <= {"1", "2", "3"}
    given = [line.split() for line in run("predict", path, test, "--proba").stdout.splitlines()]
    np.testing.assert_allclose(np.array(given, dtype=float).sum(axis=1), 1.0, atol=1e-6)
    assert "The largest weights" in run("fit", train, "--epsilon", "5", *options).stdout


@pytest.mark.parametrize("method", ["lasso", "linear"])
def test_numbers(run, rows, tmp_path, method):
    train, test = rows("train.svm", "numbers"), rows("test.svm", "numbers")
    path = tmp_path / "model.npz"
    options = ("--epsilon", "5", "--method", method, "--target-bounds=-5,25", "--seed", "1")
    found = run("fit", train, *options, "--test", test, "--model", path, "--json")
    report = json.loads(found.stdout)
    assert report["test"]["r2"] > 0.5
    assert report["test"]["mae"] < 5.0
    assert report["privacy"]["target_bounds"] == [-5.0, 25.0]
    scores = json.loads(run("evaluate", path, test, "--json").stdout)
    assert report["test"].items() <= scores.items()
    shown = run("evaluate", path, test).stdout
    assert "R^2" in shown
    assert "mean absolute error" in shown
    lines = run("predict", path, test).stdout.split()
    model = dplasso.load(path)
    assert type(model) is (dplasso.DPLasso if method == "lasso" else dplasso.DPLinearRegression)
    assert len(lines) == 300
    assert all(-5.0 <= float(line) <= 25.0 for line in lines)
    assert "R^2" in run("fit", train, *options, "--test", test).stdout
    failed = run("predict", path, test, "--proba")
    assert "predicts numbers, not probabilities" in failed.stderr
