"""From a table to predictions on the command line: a schema drafted, edited, kept by the model."""

import csv
import json

import numpy as np
import pytest

import dplasso
from dplasso import PublicEncoder
from dplasso.data.store import open_store


@pytest.fixture(scope="session")
def visits(tmp_path_factory):
    """Hospital visits: whether somebody came back depends on age and ward."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "ward", "note", "back"])
        for _ in range(900):
            age, ward = int(rng.uniform(18, 95)), rng.choice(["heart", "eyes", "bones"])
            back = rng.random() < (0.9 if age > 60 and ward == "heart" else 0.1)
            writer.writerow([age, ward, "", "yes" if back else "no"])
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
    from typer.testing import CliRunner

    from dplasso.cli.app import app

    path = tmp_path_factory.mktemp("model") / "m.npz"
    options = ("--epsilon", "50", "--n-iter", "20", "--classes", "no,yes", "--model", path)
    result = CliRunner().invoke(app, [*map(str, ("fit", visits, "--schema", schema, *options))])
    assert result.exit_code == 0, result.output
    assert "taken from the file" not in result.output
    return path


def test_a_draft_is_json_and_says_that_it_is_not_private(run, visits, tmp_path):
    result = run("schema", "draft", visits, "--label-column", "back")
    assert result.exit_code == 0, result.output
    draft = json.loads(result.stdout)
    assert draft["label"] == "back"
    assert [part["kind"] for part in draft["parts"]] == ["bins", "categories"]
    assert result.stderr.startswith("This draft is not private, because")
    (tmp_path / "s.json").write_text(result.stdout)
    fit = ("fit", visits, "--epsilon", "1", "--n-iter", "5", "--schema", tmp_path / "s.json")
    result = run(*fit)
    assert result.exit_code == 0, result.output
    assert "a draft that nobody has edited" in result.stderr
    assert run("schema", "draft", visits, "--label-column", "x").exit_code == 1


def test_raw_rows_are_predicted(run, visits, schema, model, tmp_path):
    unlabelled = tmp_path / "new.csv"
    with visits.open() as file, unlabelled.open("w", newline="") as new:
        rows = csv.DictReader(file)
        writer = csv.DictWriter(new, ["ward", "age"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    # Where nothing was compiled before, the first of all says so.
    run("predict", model, visits)
    first, second = run("predict", model, visits), run("predict", model, unlabelled)
    assert first.exit_code == second.exit_code == 0, first.output + second.output
    assert first.stderr == second.stderr == ""
    assert first.stdout == second.stdout
    assert set(first.stdout.split()) == {"no", "yes"}
    scores = json.loads(run("evaluate", model, visits, "--json").stdout)
    assert scores["auc"] > 0.65
    import pandas as pd

    frame = pd.read_csv(visits)
    assert dplasso.load(model).predict(frame).tolist() == first.stdout.split()
    X = PublicEncoder(schema).transform(frame)
    assert dplasso.load(model).predict(X).tolist() == first.stdout.split()


def test_stores_know_their_schema(run, visits, schema, model, tmp_path):
    store, other = tmp_path / "visits.store", tmp_path / "other.store"
    assert run("convert", visits, store, "--schema", schema).exit_code == 0
    assert open_store(store).shape == (900, 11 + 5 + 11 * 5)
    raw, stored = run("predict", model, visits), run("predict", model, store)
    assert stored.exit_code == 0, stored.output
    assert stored.stdout == raw.stdout
    fit = ("fit", store, "--epsilon", "1", "--n-iter", "5", "--model", tmp_path / "s.npz")
    assert run(*fit).exit_code == 0
    assert run("predict", tmp_path / "s.npz", visits).exit_code == 0
    run("convert", visits, other, "--hash-columns", "ward", "--label-column", "back")
    result = run("predict", model, other)
    assert result.exit_code == 1
    assert "was encoded by another schema than the model's" in result.stderr


def test_what_does_not_fit_is_refused_in_one_sentence(run, train, visits, schema, model, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(schema.read_text().replace("heart", "brain"))
    numbered = tmp_path / "numbered.npz"
    run("fit", train, "--epsilon", "9", "--n-iter", "3", "--binarize", "--model", numbered)
    for arguments, words in (
        (("predict", model, train), "the model was trained on a table encoded by its schema"),
        (("predict", model, visits, "--schema", other), "is not the schema that the model was"),
        (("predict", model, visits, "--binarize"), "trained without --binarize; leave it out"),
        (("predict", numbered, visits), "is a table: say with a schema"),
        (("predict", numbered, visits, "--schema", schema), "is not the schema that the model"),
        (("fit", visits, "--epsilon", "1"), "dplasso schema draft"),
        (("fit", train, "--epsilon", "1", "--schema", schema), "is not a table"),
        (("fit", visits, "--epsilon", "1", "--schema", train), "not a JSON file"),
        (
            ("fit", visits, "--epsilon", "1", "--schema", schema, "--label-column", "age"),
            "cannot be both label and feature",
        ),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, result.output
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    result = run("convert", train, tmp_path / "s", "--schema", schema)
    assert "--schema goes with tables" in " ".join(result.stderr.split())


def test_a_model_made_binary_makes_new_rows_binary(run, train, held_out, tmp_path):
    """The log-loss of a model evaluated as it was not trained went from .387 to .662."""
    model = tmp_path / "m.npz"
    run("fit", train, "--epsilon", "50", "--n-iter", "20", "--binarize", "--model", model)
    plain = run("evaluate", model, held_out, "--json")
    told = run("evaluate", model, held_out, "--binarize", "--json")
    assert plain.exit_code == 0, plain.output
    assert plain.stdout == told.stdout
    run("convert", held_out, tmp_path / "raw.store", "--features", "30")
    run("convert", held_out, tmp_path / "ones.store", "--features", "30", "--binarize")
    result = run("predict", model, tmp_path / "raw.store")
    assert result.exit_code == 1
    assert "trained on values turned into 1 (--binarize)" in result.stderr
    assert run("evaluate", model, tmp_path / "ones.store", "--json").stdout == plain.stdout


def test_a_model_that_carries_none_says_so(run, held_out, train, tmp_path):
    from dplasso.data.files import read_data

    data = read_data(train)
    model = dplasso.DPLassoClassifier(epsilon=50.0, n_iter=5, random_state=0)
    model.fit(data.X, data.y).save(tmp_path / "m.npz")
    result = run("predict", tmp_path / "m.npz", held_out, "--binarize")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("warning: the model does not say how its columns were made")
