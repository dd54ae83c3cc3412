"""From a table to predictions: a schema drafted, edited, with private edges, kept by the model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_svmlight_file

import dplasso
from cli.conftest import done, found, refused, run_command


def test_a_model_made_binary_makes_new_rows_binary(train, held_out, tmp_path):
    """The log-loss of a model evaluated as it was not trained went from .387 to .662."""
    model = tmp_path / "m.npz"
    done("fit", train, "--epsilon", "50", "--binarize", "--model", model)
    scores = found("evaluate", model, held_out)
    assert scores == found("evaluate", model, held_out, "--binarize")
    done("convert", held_out, tmp_path / "raw.store", "--features", "30")
    done("convert", held_out, tmp_path / "ones.store", "--features", "30", "--binarize")
    raw = run_command("predict", model, tmp_path / "raw.store")
    refused(raw, "trained on values replaced by 1 (--binarize)")
    assert found("evaluate", model, tmp_path / "ones.store") == scores


def test_a_model_that_carries_none_says_so(held_out, train, tmp_path):
    X, y = load_svmlight_file(str(train))
    dplasso.DPLogisticRegression(50.0, random_state=0).fit(X, y).save(tmp_path / "m.npz")
    result = done("predict", tmp_path / "m.npz", held_out, "--binarize")
    assert "warning: the model does not say how its columns were made" in result.stderr


# --- drafts -------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A bank's table as a spreadsheet of another country writes it."""
    rng = np.random.default_rng(3)
    path, n = tmp_path / "bank.csv", 300
    pd.DataFrame({
        "age": rng.uniform(18, 95, n).astype(int),
        "branch": rng.choice(["Köln", "Bonn"], n),
        "member": rng.choice(["yes", "no"], n),
        "since": [f"{1990 + k % 30}-0{1 + k % 9}-11" for k in range(n)],
        "income": np.exp(rng.normal(10, 1, n)).round(2),
        "bought": rng.choice(["no", "yes"], n),
    }).to_csv(path, index=False, sep=";", decimal=",")  # fmt: skip
    return path


def test_a_draft_says_how_it_read_and_what_it_guessed(table):
    result = done("schema", "draft", table)
    lines = result.stderr.splitlines()
    assert lines[0].startswith("bank.csv: semicolons between fields, decimal comma, UTF-8")
    assert lines[1] == "the draft takes 'bought' as the label; --label-column names another"
    assert lines[2].startswith("This draft is not private: ")
    assert lines[3].startswith('4 of 6 parts say "confirm": edit them')
    assert '{"kind": "pairs"}' in lines[4]
    parts = json.loads(result.stdout)["parts"]
    kinds = ["levels", "categories", "categories", "date", "date", "levels"]
    assert [part["kind"] for part in parts] == kinds
    assert ["confirm" in part for part in parts] == [True, True, False, True, False, True]
    income = parts[-1]
    assert {income["low"], income["high"]} <= {0, *(d * 10**k for d in (1, 2, 5) for k in range(7))}
    assert all("about" in part for part in parts)
    assert result.stdout.endswith(' "confirmed": false\n}\n')
    refused_here = run_command("schema", "draft", table, "--delimiter", "tab")
    assert "no column looks like the label" in refused_here.stderr
    assert "no column of numbers, text, dates or bools" in refused_here.stderr


def test_a_draft_is_marked_until_somebody_has_edited_and_confirmed_it(table, tmp_path):
    path, model = tmp_path / "schema.json", tmp_path / "m.npz"
    document = json.loads(done("schema", "draft", table).stdout)
    unmarked = [{k: v for k, v in part.items() if k != "confirm"} for part in document["parts"]]
    fit = ("fit", table, "--schema", path, "--epsilon", "1", "--classes", "no,yes")
    for change, level, words in (
        ({}, ["red"], "nobody has edited"),
        ({"note": "", "parts": unmarked}, ["amber"], "nobody has confirmed that the schema uses"),
        ({"confirmed": True}, [], "semicolons between fields"),
    ):
        document |= change
        path.write_text(json.dumps(document))
        told = done(*fit, "--model", model, "--force").stderr
        assert words in told
        assert told.count("nobody has") == len(level)
        converted = done("convert", table, tmp_path / "s", "--schema", path, "--force").stderr
        assert converted.count("nobody has") == len(level)
        assert [one["level"] for one in found("show", model)["cautions"]] == level
    # What the draft said of the records does not leave with the model.
    kept = dplasso.load(model).model_.origin.schema.to_json()
    assert not {"note", "confirm", "about"} & {*kept, *(k for part in kept["parts"] for k in part)}


def test_the_curator_is_told_of_columns_that_say_nothing(tmp_path):
    rows = "".join(f"clerk,{k % 90},{k % 2},,{'yes' if k % 3 else 'no'}\n" for k in range(400))
    (tmp_path / "t.csv").write_text("job,age,on,note,back\n" + rows)
    parts = [
        {"kind": "categories", "column": "job", "categories": ["Clerk", "cook"]},
        {"kind": "levels", "column": "age", "low": 1000, "high": 2000},
        {"kind": "bins", "column": "on", "edges": [5]},
        {"kind": "categories", "column": "note", "categories": ["a"]},
    ]
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"label": "back", "parts": parts}))
    fit = ("--epsilon", "1", "--classes", "no,yes")
    expected = [
        "job: all 400 rows have job (unknown)",
        "age: all 400 rows have age<1015.62",
        "on: all 400 rows have on<5",
        "note: all 400 rows have note (missing)",
    ]
    report = found("fit", tmp_path / "t.csv", "--schema", path, *fit)
    assert report["remarks"] == expected
    assert "remarks" in report["not_for_release"]
    told = " ".join(done("fit", tmp_path / "t.csv", "--schema", path, *fit).stdout.split())
    assert told.index("Do not release") < told.index("job: all 400 rows have job (unknown); age:")
    # The same of a store, whose columns have numbers of their own.
    done("convert", tmp_path / "t.csv", tmp_path / "t.store", "--schema", path)
    assert found("fit", tmp_path / "t.store", *fit)["remarks"] == expected
    parts[0] |= {"unknown": "ignore"}
    parts[1:] = [{"kind": "hashed", "columns": ["age"]}]
    path.write_text(json.dumps({"label": "back", "parts": parts}))
    (said_so,) = found("fit", tmp_path / "t.csv", "--schema", path, *fit)["remarks"]
    assert said_so == "job: no row of 400 has a value that it declares"
