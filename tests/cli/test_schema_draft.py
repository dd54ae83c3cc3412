"""A schema drafted from a table and edited by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cli.conftest import done, found
from dplasso.cli.app import app
from dplasso.encoding.schema import read_schema


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


@pytest.fixture
def drafted(table, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(done("schema", "draft", table).stdout)
    return path


def test_a_draft_says_how_it_read_and_what_it_guessed(run, table):
    result = done("schema", "draft", table)
    lines = result.stderr.splitlines()
    assert lines[0].startswith("bank.csv: semicolons between fields, decimal comma, quotes")
    assert lines[1] == "the label is taken to be 'bought'; --label-column names another"
    assert lines[2].startswith("This draft is not private: ")
    assert lines[3].startswith('4 of 6 parts are marked "confirm": edit them')
    parts = json.loads(result.stdout)["parts"]
    kinds = ["bins", "categories", "categories", "date", "date", "bins"]
    assert [part["kind"] for part in parts] == kinds
    assert ["confirm" in part for part in parts] == [True, True, False, True, False, True]
    income = parts[-1]["edges"]
    assert set(income) <= {d * 10**k for d in (1, 2, 5) for k in range(7)}
    refused_here = run("schema", "draft", table, "--delimiter", "tab")
    assert "no column looks like the label" in refused_here.stderr
    assert "no column of numbers, words, dates or bools" in refused_here.stderr


def test_a_terminal_is_asked_for_the_label(table, monkeypatch):
    monkeypatch.setattr("dplasso.cli.output.can_ask", lambda: True)
    for answer, label in (("", "bought"), ("member", "member"), ("none", None)):
        result = CliRunner().invoke(app, ["schema", "draft", str(table)], input=f"{answer}\n")
        assert "Which column is the label? [bought]" in result.stderr
        assert json.loads(result.stdout)["label"] == label


def test_a_draft_edited_by_hand_fits_without_a_warning(table, drafted, tmp_path):
    document = json.loads(drafted.read_text())
    age, branch, *_, income = document["parts"]
    age["edges"] = {"low": 0, "high": 100, "bins": 5, "spacing": "equal"}
    branch |= {"categories": ["Köln", "Bonn", "Halle, Saale"], "unknown": "ignore"}
    income["edges"] = {"low": 1000, "high": 1e6, "bins": 3, "spacing": "log"}
    del document["parts"][3]
    for part in document["parts"]:
        part.pop("confirm", None)
    drafted.write_text(json.dumps(document))
    fit = ("fit", table, "--schema", drafted, "--epsilon", "1", "--classes", "no,yes",
           "--method", "logistic", "--model", tmp_path / "m.npz")  # fmt: skip
    # As long as the note is there.
    assert "nobody has edited" in done(*fit, "--force").stderr
    drafted.write_text(json.dumps(document | {"note": ""}))
    schema = read_schema(drafted)
    assert not schema.is_unedited_draft
    assert schema.parts[0].edges == (0, 20, 40, 60, 80, 100)
    assert schema.parts[-1].edges == pytest.approx((1e3, 1e4, 1e5, 1e6))
    told = done(*fit, "--force").stderr
    assert "nobody has edited" not in told
    assert "semicolons between fields" in told
    # Rows that are written in another way are the same rows.
    other = tmp_path / "plain.tsv"
    pd.read_csv(table, sep=";", decimal=",").to_csv(other, index=False, sep="\t")
    assert found("evaluate", tmp_path / "m.npz", table) == found(
        "evaluate", tmp_path / "m.npz", other
    )
    converted = done("convert", table, tmp_path / "bank.store", "--schema", drafted)
    assert "semicolons between fields" in converted.stderr
    ours, theirs = (
        done("predict", tmp_path / "m.npz", rows).stdout
        for rows in (other, tmp_path / "bank.store")
    )
    assert ours == theirs
