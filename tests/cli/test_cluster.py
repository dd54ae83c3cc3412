"""``--cluster``: many files to many stores, a fit on all of them, and scores; here in threads."""

import json

import numpy as np

import dplasso
from dplasso.checkpoint import read_checkpoint

CLUSTER = ("--cluster", "threads")


def test_a_fit_on_stores_is_the_fit_on_the_file(run, train, stores, tmp_path):
    for method in ("lasso", "logistic"):
        one, other = tmp_path / f"{method}-one.npz", tmp_path / f"{method}-other.npz"
        options = ("--epsilon", "20", "--seed", "1", "--method", method, "--json")
        run("fit", train, *options, "--model", one)
        kept = tmp_path / f"{method}.checkpoint"
        result = run("fit", stores, *options, *CLUSTER, "--model", other, "--checkpoint", kept)
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert (report["n_samples"], report["n_features"]) == (800, 30)
        expected, found = (dplasso.load(path).model_.release.arrays() for path in (one, other))
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
        assert read_checkpoint(kept).finished


def test_predictions_and_scores_are_those_of_the_rows(run, train, stores, model, tmp_path):
    plain = tmp_path / "plain.npz"
    run("fit", train, "--epsilon", "50", "--seed", "1", "--model", plain)
    one = run("predict", plain, train, "--proba")
    other = run("predict", plain, stores, "--proba", *CLUSTER)
    assert other.exit_code == 0, other.output
    assert other.stdout == one.stdout
    scored = [
        json.loads(run("evaluate", plain, *what, "--json").stdout)
        for what in ((train,), (stores, *CLUSTER))
    ]
    assert scored[0] == scored[1]
