"""The privacy statement: what it claims, in which words, and that it survives being written."""

import dataclasses
import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import PrivacyStatement, privacy_cost


def state(**changes) -> PrivacyStatement:
    """Return the statement of a fit; what only data tell is changed in it."""
    settings = {"epsilon": 1.0, "method": "frank-wolfe", "n_iter": 50, "l1_radius": 5.0}
    told = {
        name: changes.pop(name) for name in {"classes", "prior", "many_labels"} & changes.keys()
    }
    if "target_bounds" in changes:
        settings = {"epsilon": 1.0, "method": "lasso"}
    return dataclasses.replace(privacy_cost(**(settings | changes)), **told)


STATE = state()
STATEMENTS = {
    "private": {},
    "replace-one": {"neighbors": "replace-one", "feature_bound": 0.25, "epsilon": 30.0},
    "classes from y": {"classes": "taken from y, treated as public"},
    "seeded": {"random_state": 1},
    "paper": {"mechanism": "paper"},
    "paper, seeded": {"mechanism": "paper", "random_state": 1},
    "no privacy": {"epsilon": math.inf},
    "no privacy, seeded": {"epsilon": math.inf, "random_state": 1},
    "numbers": {"target_bounds": (0.0, 1.0)},
    "labels from a prior": {"n_classes": 3, "many_labels": True, "prior": "a model"},
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_only_unseeded_noisy_runs_are_private_and_others_begin_with_the_bad_news(name):
    statement = state(**STATEMENTS[name])
    assert statement.is_private == (
        not any(word in name for word in ("seeded", "paper", "no privacy"))
    )
    assert bool(statement.reasons) != statement.is_private
    first = statement.text().splitlines()[0]
    assert first.startswith("NOT differentially private: ") != statement.is_private
    assert all(reason in first for reason in statement.reasons)
    assert ("times as large" in statement.text()) == statement.is_private


def test_entries_of_a_private_run():
    statement = state(neighbors="replace-one", feature_bound=2.0)
    assert 0.99 < statement.epsilon <= statement.epsilon_requested == 1.0
    assert (statement.delta, statement.steps) == (1e-6, 50)
    assert statement.find("vertices").numbers["sensitivity"] == 2.0
    # The first release that states a number has it; nobody states a number of tries.
    assert statement.number("sensitivity") == math.sqrt(2.0)
    assert statement.number("feature_bound") == 2.0
    assert statement.number("tries") is statement.find("search") is None
    assert statement.find("count").numbers["share"] == 0.01
    drawn = statement.number("eps0") ** 2 / 8.0 * 50
    assert drawn == pytest.approx(0.99 * statement.mu**2 / 2.0)
    assert statement.randomness == "operating system"
    assert "dp-accounting" in statement.accountant
    assert 0 < statement.sampling_delta < statement.delta


def test_no_bound_without_the_exponential_mechanism():
    # A seeded run keeps its figures, and says why they do not hold.
    seeded = state(random_state=1)
    assert (seeded.epsilon, seeded.randomness) == (state().epsilon, "seeded")
    assert "a seed was given" in seeded.reasons[0]
    for changes in ({"mechanism": "paper"}, {"epsilon": math.inf}):
        statement = state(**changes)
        assert statement.epsilon == statement.mu == math.inf
        assert statement.accountant == ""
    assert "true sign" in state(mechanism="paper").reasons[0]
    assert len(state(**STATEMENTS["paper, seeded"]).reasons) == 2
    # Without randomness a seed changes nothing.
    assert state(epsilon=math.inf, random_state=1) == state(epsilon=math.inf)
    assert state(epsilon=math.inf).randomness == "none"


def test_text_of_a_private_run_says_everything():
    text = state().text()
    for words in (
        "Differentially private with epsilon = 1 and delta = 1e-06",
        "each single record",
        "any one record were added or removed",
        "at most e^epsilon = 2.719 times as large",
        "How: noisy counts of the two classes; and 50 steps, each a random choice",
        "zCDP). Accounted by",
        "exponential mechanism",
        "dp-accounting",
        "operating system",
        "the number and meaning of the columns",
        "the two class labels, the bound on entries (1;",
        "larger entries were clipped to it), and all other settings",
        "tuned on the same records",
    ):
        assert words in text
    assert str(state()) == text
    assert "any one record were replaced by any other" in state(neighbors="replace-one").text()
    assert "they were taken from the data" in state(**STATEMENTS["classes from y"]).text()
    assert "taken from the data" not in text
    # e^30 would tell nobody anything.
    assert "e^epsilon times" in state(epsilon=30.0).text()


def shown(value):
    """Return the epsilon that a text tells."""
    text = dataclasses.replace(STATE, epsilon=value, epsilon_requested=value).text()
    return re.match(r"Differentially private with epsilon = (\S+) and", text)[1]


@settings(max_examples=300)
@given(value=st.floats(1e-12, 1e6))
def test_shown_figures_are_never_smaller_than_true_ones(value):
    assert value * (1 - 1e-11) <= float(shown(value)) <= value * 1.0011


def test_shown_figures():
    values = {1.0: "1", 0.9999999999: "1", 0.30000000000000004: "0.3", 2.71801: "2.719"}
    assert {value: shown(value) for value in values} == values


@pytest.mark.parametrize("name", STATEMENTS)
def test_it_comes_back_from_strict_and_complete_json(name):
    def refuse(constant):
        raise AssertionError(constant)

    statement = state(**STATEMENTS[name])
    for text in (statement.to_json(), statement.to_json(indent=None)):
        assert PrivacyStatement.from_json(text) == statement
    values = json.loads(statement.to_json(), parse_constant=refuse)
    assert values.keys() == {field.name for field in dataclasses.fields(PrivacyStatement)}
    # Whole numbers in JSON are numbers.
    values = statement.to_dict()
    whole = {k: int(v) for k, v in values.items() if type(v) is float and math.isfinite(v)}
    whole = {k: v for k, v in whole.items() if v == values[k]}
    assert PrivacyStatement.from_dict(values | whole) == statement


def test_missing_and_unknown_entries_are_named():
    values = STATE.to_dict()
    for name in values:
        others = {key: value for key, value in values.items() if key != name}
        with pytest.raises(ValueError, match=f"lacks {name}"):
            PrivacyStatement.from_dict(others)
    with pytest.raises(ValueError, match="unknown entries: loss"):
        PrivacyStatement.from_dict(values | {"loss": 0.5})


WRONG_KINDS = {
    "is_private": [1, "true"],
    "epsilon": [-1.0, math.nan, "1", None, True],
    "mu": [-1.0, None],
    "delta": [0.0, 1.0],
    "steps": [0, 1.0, True],
    "n_classes": [-1, 2.0],
    "neighbors": ["both", None],
    "mechanism": ["laplace", ["exponential"]],
    "randomness": ["dice"],
    "classes": ["guessed"],
    "records": ["many"],
    "about": ["page"],
    "prior": [None],
    "reasons": ["because", [1]],
    "target_bounds": [[1.0, 0.0], [0.0], "0 to 1", [0.0, math.inf]],
    "epsilon_by_rows": [[1.0], {"2": -1.0}],
}


def test_releases_of_another_form_are_refused():
    count = {"name": "count", "words": "", "numbers": {}}
    wrong = {"name": 1}, {"numbers": [1.0]}, {"numbers": {"eps0": -1.0}}, {"numbers": {"eps0": "1"}}
    for releases in ("count", [{"name": "count"}], *([count | change] for change in wrong)):
        with pytest.raises(ValueError, match="releases"):
            PrivacyStatement.from_dict(STATE.to_dict() | {"releases": releases})


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_entries_of_the_wrong_kind_are_refused(name):
    for value in WRONG_KINDS[name]:
        with pytest.raises(ValueError, match=f"^{name} of a privacy statement cannot be"):
            PrivacyStatement.from_dict(state().to_dict() | {name: value})


def test_a_claim_that_its_entries_contradict_is_refused():
    for change in (
        {"is_private": False},
        {"reasons": ["it is not"]},
        {"epsilon": 1.5},
        {"epsilon": "inf"},
        {"mu": "inf"},
        {"mechanism": "paper"},
        {"randomness": "seeded"},
        {"randomness": "none"},
        {"many_labels": True, "n_classes": 1},
        {"target_bounds": [0.0, 1.0]},
    ):
        with pytest.raises(ValueError):
            PrivacyStatement.from_dict(state().to_dict() | change)
    for name in ("seeded", "paper", "no privacy"):
        values = state(**STATEMENTS[name]).to_dict() | {"is_private": True, "reasons": []}
        with pytest.raises(ValueError):
            PrivacyStatement.from_dict(values)


@pytest.mark.parametrize("values", [None, [], "{}", 3])
def test_only_mappings_are_statements(values):
    with pytest.raises(ValueError, match="must be a mapping"):
        PrivacyStatement.from_dict(values)


def test_edges_and_scores_say_what_they_are():
    words = "noisy counts in the cells of a public grid"
    edges = STATE.releases[0]._replace(name="edges", words=words, numbers={"mu": 0.1})
    known = {"mechanism": "gaussian", "mu": 0.1, "releases": (edges,)}
    statement = dataclasses.replace(state(), about="edges", **known)
    for words in ("from the edges", "in the cells of a public grid (together 0.1-GDP)", "bounds"):
        assert words in statement.text()
    assert "steps" not in statement.text()
    score = dataclasses.replace(state(), about="score").text()
    assert "scored data" in score
    assert "the model's own training cost" in " ".join(score.split())
    seeded = dataclasses.replace(state(random_state=1), about="edges")
    assert "Treat these edges like the records that went in." in seeded.text()
