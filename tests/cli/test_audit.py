import json

import pytest

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
    arguments = ("audit", "--mechanism", "paper", "--epsilon", "0.1", *QUICK)
    report = json.loads(done(*arguments, "--json", code=3).stdout)
    assert report["verdict"] == "violation"
    assert report["findings"][1]["violated"]
    assert "VIOLATION" in done(*arguments, code=3).stdout
    assert "Exit code 3 if the claim is refuted" in said("audit", "--help")


def test_text_output():
    text = said("audit", *QUICK, "--neighbors", "replace-one")
    for words in (
        *("canary: one step", "nothing found", "the attacks on whole fits found nothing"),
        "Consistent: nothing refutes the claim (epsilon = 1, delta = 1e-06, replace-one)",
    ):
        assert words in text


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_noisy_gradients_are_consistent(neighbors):
    given = ("--method", "logistic", "--runs", "100", "--epsilon", "0.1", "--neighbors", neighbors)
    assert "canary: noisy gradients" in said("audit", *given)
