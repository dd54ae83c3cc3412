import json
from dataclasses import replace

import pytest
from matplotlib.image import imread

QUICK = ("--runs", "100", "--canaries", "60")


def test_the_default_is_consistent(run, tmp_path):
    directory = tmp_path / "new" / "audit"
    result = run("audit", "--method", "canary", *QUICK, "--out", directory, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["verdict"] == "consistent"
    assert report["claim"]["epsilon"] == 1.0
    assert report["confidence"] > 0.999
    assert {f["name"] for f in report["findings"]} == {
        "canary: whole fits",
        "canary: public estimator",
        "canary: one step",
        "repeated releases",
    }
    written = json.loads((directory / "audit.json").read_text())
    assert written == {key: value for key, value in report.items() if key != "files"}
    assert imread(directory / "audit.png").shape[0] > 600


def test_the_papers_mechanism_is_refuted_and_the_exit_code_says_so(run, tmp_path):
    arguments = ("audit", "--mechanism", "paper", "--epsilon", "0.1", *QUICK)
    result = run(*arguments, "--method", "one-run", "--json")
    assert result.exit_code == 3
    report = json.loads(result.stdout)
    assert report["verdict"] == "violation"
    assert report["findings"][0]["figures"]["correct"] > 40
    text = run(*arguments, "--method", "exact")
    assert text.exit_code == 3
    assert "VIOLATION" in text.stdout


def test_text_output_without_files(run):
    result = run("audit", "--method", "one-run", *QUICK, "--neighbors", "replace-one")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "one run, many canaries" in text
    assert "nothing found" in text
    assert "the attacks on whole fits found nothing" in text
    assert "Consistent: nothing refutes the claim (epsilon = 1, delta = 1e-06, replace-one)" in text


def test_help_tells_the_exit_codes(run):
    text = " ".join(run("audit", "--help").stdout.split())
    assert "Exit code 3 if the claim is refuted" in text


LOGISTIC = ("audit", "--method", "logistic", "--runs", "100", "--n-iter", "3", "--epsilon", "0.1")


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_noisy_gradients_are_consistent(run, neighbors):
    result = run(*LOGISTIC, "--neighbors", neighbors)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "canary: noisy gradients" in text
    assert "Exact enumeration is for vertices" in text


def test_noise_that_is_far_too_small_is_refuted(run, monkeypatch):
    """The power of the audit: 200 fits on each neighbour, noise 200 times too small."""
    from dplasso.fit.descent import GradientDescent

    original = GradientDescent.solver

    def too_little(self, task, right, *rest, **options):
        return original(self, task, replace(right, mu=200 * right.mu), *rest, **options)

    monkeypatch.setattr(GradientDescent, "solver", too_little)
    result = run(*LOGISTIC, "--json")
    assert result.exit_code == 3, result.output
    report = json.loads(result.stdout)
    assert report["claim"]["epsilon"] == 0.1
    assert report["audited_epsilon"] > 1
