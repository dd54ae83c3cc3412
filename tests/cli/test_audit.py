"""``audit``, and ``demo`` on the real data."""

import json

import pytest

import dplasso
from cli.conftest import done, found, said

QUICK = ("--runs", "100")


def test_the_default_is_consistent():
    report = found("audit", *QUICK)
    assert report["verdict"] == "consistent"
    assert report["claim"]["epsilon"] == 1.0
    assert report["confidence"] > 0.999
    assert {one["name"] for one in report["findings"]} == {
        *("canary: whole fits", "canary: one step", "repeated releases"),
    }


def test_the_papers_mechanism_is_refuted_and_the_exit_code_says_so():
    arguments = ("audit", "--mechanism", "paper", "--epsilon", "0.1", *QUICK, "--json")
    report = json.loads(done(*arguments, code=3).stdout)
    assert report["verdict"] == "violation"
    assert report["findings"][1]["violated"]
    assert "Exit code 3 if the claim is refuted" in said("audit", "--help")


def test_noisy_gradients_are_consistent():
    given = ("--method", "logistic", *QUICK, "--epsilon", "0.1", "--neighbors", "replace-one")
    text = said("audit", *given)
    assert "canary: noisy gradients" in text
    assert "nothing refutes the claim (epsilon = 0.1, delta = 1e-06, replace-one)" in text


def test_the_whole_job_on_the_real_data(tmp_path):
    directory = tmp_path / "new" / "demo"
    report = found("demo", "--out", directory, "--epsilon", "2")
    assert (report["n_samples"], report["n_test"], report["n_features"]) == (32560, 16281, 193681)
    for name in ("lasso", "logistic", "plain"):
        assert set(report[name]) == {"auc", "accuracy", "n_nonzero", "seconds"}
        assert 0.85 < report[name]["auc"] < 0.93
        assert 0.5 < report[name]["accuracy"] < 0.87
    # What nothing hides predicts best.
    assert report["plain"]["auc"] > max(report[name]["auc"] for name in ("lasso", "logistic"))
    assert report["majority_accuracy"] == pytest.approx(0.7638, abs=1e-4)
    for name in ("lasso", "logistic"):
        assert report["privacy"][name]["is_private"] is True
        assert 1.98 < report["privacy"][name]["epsilon"] <= 2

    assert sorted(path.name for path in directory.iterdir()) == [
        *("lasso.npz", "logistic.npz"),
    ]
    for name in ("lasso", "logistic"):
        model = dplasso.load(directory / f"{name}.npz")
        for feature in report["heaviest"][name]:
            assert model.coef_[0, feature["column"]] == feature["weight"]
            assert feature["name"]
            assert feature["z"] == pytest.approx(feature["weight"] / feature["standard_error"])
        assert model.privacy_.to_dict() == report["privacy"][name]
