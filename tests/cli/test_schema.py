"""From a table to predictions on the command line: a schema drafted, edited, kept by the model."""

import json

import numpy as np
import pandas as pd
import pytest

import dplasso
from cli.conftest import done, found, refused
from dplasso import PublicEncoder
from dplasso.data.formats import read_data
from dplasso.data.store import open_store


@pytest.fixture(scope="session")
def visits(tmp_path_factory):
    """Hospital visits: whether somebody came back depends on age and ward."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    age, ward = rng.uniform(18, 95, 900), rng.choice(["heart", "eyes", "bones"], 900)
    table = pd.DataFrame({"age": age.astype(int), "ward": ward, "note": ""})
    often = (table["age"] > 60) & (table["ward"] == "heart")
    table["back"] = np.where(rng.random(900) < np.where(often, 0.9, 0.1), "yes", "no")
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def schema(visits, tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "schema.json"
    parts = [
        {"kind": "bins", "column": "age", "edges": {"low": 20, "high": 100, "bins": 8}},
        {"kind": "categories", "column": "ward", "categories": ["bones", "eyes", "heart"]},
        {"kind": "cross", "columns": ["age", "ward"]},
    ]
    path.write_text(json.dumps({"label": "back", "parts": parts}))
    return path


@pytest.fixture(scope="session")
def model(visits, schema, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.npz"
    options = ("--epsilon", "50", "--n-iter", "20", "--classes", "no,yes", "--model", path)
    assert "taken from the file" not in done("fit", visits, "--schema", schema, *options).output
    return path


def test_a_draft_is_json_and_says_that_it_is_not_private(run, visits, tmp_path):
    result = done("schema", "draft", visits, "--label-column", "back")
    draft = json.loads(result.stdout)
    assert draft["label"] == "back"
    assert [part["kind"] for part in draft["parts"]] == ["bins", "categories"]
    assert result.stderr.startswith("This draft is not private: ")
    (tmp_path / "s.json").write_text(result.stdout)
    fit = ("fit", visits, "--epsilon", "1", "--n-iter", "5", "--schema", tmp_path / "s.json")
    assert "a draft that nobody has edited" in done(*fit).stderr


def test_raw_rows_are_predicted(visits, schema, model, tmp_path):
    unlabelled, frame = tmp_path / "new.csv", pd.read_csv(visits)
    frame[["ward", "age"]].to_csv(unlabelled, index=False)
    # Where nothing was compiled before, the first of all says so.
    done("predict", model, visits)
    first, second = (done("predict", model, rows) for rows in (visits, unlabelled))
    assert first.stderr == second.stderr == ""
    assert first.stdout == second.stdout
    assert set(first.stdout.split()) == {"no", "yes"}
    assert found("evaluate", model, visits)["auc"] > 0.65
    for X in (frame, PublicEncoder(schema).transform(frame)):
        assert dplasso.load(model).predict(X).tolist() == first.stdout.split()


def test_stores_know_their_schema(run, visits, schema, model, tmp_path):
    store, other = tmp_path / "visits.store", tmp_path / "other.store"
    done("convert", visits, store, "--schema", schema)
    assert open_store(store).shape == (900, 11 + 5 + 11 * 5)
    assert done("predict", model, visits).stdout == done("predict", model, store).stdout
    done("fit", store, "--epsilon", "1", "--n-iter", "5", "--model", tmp_path / "s.npz")
    done("predict", tmp_path / "s.npz", visits)
    done("convert", visits, other, "--hash-columns", "ward", "--label-column", "back")
    refused(run("predict", model, other), "was encoded by another schema than the model's")


def test_what_does_not_fit_is_refused_in_one_sentence(run, train, visits, schema, model, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(schema.read_text().replace("heart", "brain"))
    numbered = tmp_path / "numbered.npz"
    done("fit", train, "--epsilon", "9", "--n-iter", "3", "--binarize", "--model", numbered)
    fit = ("fit", visits, "--epsilon", "1")
    for arguments, words in (
        (("predict", model, train), "the model was trained on a table encoded by its schema"),
        (("predict", model, visits, "--schema", other), "is not the schema that the model was"),
        (("predict", model, visits, "--binarize"), "trained without --binarize; leave it out"),
        (("predict", numbered, visits), "is a table: say with a schema"),
        (("predict", numbered, visits, "--schema", schema), "is not the schema that the model"),
        (fit, "dplasso schema draft"),
        (("fit", train, "--epsilon", "1", "--schema", schema), "is not a table"),
        ((*fit, "--schema", train), "not a JSON file"),
        ((*fit, "--schema", schema, "--label-column", "age"), "cannot be both label and feature"),
    ):
        refused(run(*arguments), words)
    strange = run("convert", train, tmp_path / "s", "--schema", schema)
    refused(strange, "--schema goes with tables", code=2)


def test_a_model_made_binary_makes_new_rows_binary(run, train, held_out, tmp_path):
    """The log-loss of a model evaluated as it was not trained went from .387 to .662."""
    model = tmp_path / "m.npz"
    done("fit", train, "--epsilon", "50", "--n-iter", "20", "--binarize", "--model", model)
    scores = found("evaluate", model, held_out)
    assert scores == found("evaluate", model, held_out, "--binarize")
    done("convert", held_out, tmp_path / "raw.store", "--features", "30")
    done("convert", held_out, tmp_path / "ones.store", "--features", "30", "--binarize")
    raw = run("predict", model, tmp_path / "raw.store")
    refused(raw, "trained on values turned into 1 (--binarize)")
    assert found("evaluate", model, tmp_path / "ones.store") == scores


def test_a_model_that_carries_none_says_so(held_out, train, tmp_path):
    data = read_data(train)
    model = dplasso.DPLassoClassifier(epsilon=50.0, n_iter=5, random_state=0)
    model.fit(data.X, data.y).save(tmp_path / "m.npz")
    result = done("predict", tmp_path / "m.npz", held_out, "--binarize")
    assert result.stderr.startswith("warning: the model does not say how its columns were made")
