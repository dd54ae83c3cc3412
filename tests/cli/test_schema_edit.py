"""A schema drafted and edited by questions, piped as a person would type the answers."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cli.conftest import done, found, refused
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


def answered(path, *answers, more=()):
    arguments = ["schema", "edit", str(path), *map(str, more)]
    return CliRunner().invoke(app, arguments, input="".join(f"{one}\n" for one in answers))


def test_a_draft_says_how_it_read_and_what_it_guessed(run, table):
    result = done("schema", "draft", table)
    lines = result.stderr.splitlines()
    assert lines[0].startswith("bank.csv: semicolons between fields, decimal comma, quotes")
    assert lines[1] == "the label is taken to be 'bought'; --label-column names another"
    assert lines[2].startswith("This draft is not private, because")
    assert lines[3].startswith("4 of 6 parts are marked with what a person has to confirm")
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


def test_enter_leaves_everything_as_it_is(drafted):
    before = drafted.read_bytes()
    result = answered(drafted, *[""] * 40)
    assert result.exit_code == 0
    assert "nothing was changed; still a draft, of which fits warn" in result.stdout
    assert "4 of 6 parts are still to be confirmed." in result.stderr
    assert drafted.read_bytes() == before


def test_a_schema_edited_by_questions_fits_without_a_warning(table, drafted, tmp_path):
    answers = [
        *("", "", "0 to 100 in 5"),  # label, age
        *("", 'Köln, Bonn, "Halle, Saale"', "ignore"),
        *("", "", ""),  # member: as it is
        *("no",),  # years
        *("",),  # months
        *("perhaps", "", "x", "5, 1", "1000 to 1e6 in 3 log"),
        "yes",
    ]
    result = answered(drafted, *answers)
    assert result.exit_code == 0, result.output
    assert "Answer yes or no." in result.stderr
    assert "Write edges separated by commas, or for example" in result.stderr
    assert "must be finite, ascending numbers" in result.stderr
    assert "ready to fit with" in result.stdout
    schema = read_schema(drafted)
    assert not schema.is_unedited_draft
    assert schema.label == "bought"
    age, branch, member, month, income = schema.parts
    assert age.edges == (0, 20, 40, 60, 80, 100)
    assert branch.categories == ("Köln", "Bonn", "Halle, Saale")
    assert branch.unknown == "ignore"
    assert member.categories == ("no", "yes")
    assert month.take == "month"
    assert income.edges == pytest.approx((1e3, 1e4, 1e5, 1e6))
    fit = done("fit", table, "--schema", drafted, "--epsilon", "1", "--classes", "no,yes",
               "--method", "logistic", "--model", tmp_path / "m.npz")  # fmt: skip
    assert "nobody has edited" not in fit.stderr
    assert "semicolons between fields" in fit.stderr
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


def test_marks_go_where_a_person_confirms(drafted, tmp_path):
    answers = ["", "", "", "yes", "", "", "", "yes", *[""] * 40]
    result = answered(drafted, *answers, more=["--out", tmp_path / "new.json"])
    assert "2 of 6 parts are still to be confirmed" in result.stderr
    confirmed = read_schema(tmp_path / "new.json")
    assert [bool(mark) for mark in confirmed.confirm] == [*[False] * 3, True, False, True]
    assert confirmed.note
    assert confirmed.parts == read_schema(drafted).parts


def test_answers_that_end_early_change_nothing(drafted, tmp_path):
    before = drafted.read_bytes()
    for n in range(5):
        result = answered(drafted, *["", "no", "", "a,b", "error"][:n])
        assert result.exit_code == 1
        assert result.stderr.splitlines()[-1].endswith("schema.json is as it was")
        assert drafted.read_bytes() == before
    everything = answered(drafted, "", *["no"] * 6)
    assert "no part is left: a schema needs at least one" in everything.stderr
    assert drafted.read_bytes() == before
    refused(answered(drafted, more=["--out", drafted]), "is an input of this command")
    refused(answered(tmp_path / "none.json"), "No such file")


def test_kinds_of_parts(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"parts": [
        {"kind": "categories", "column": "a", "categories": [1, 2]},
        {"kind": "categories", "column": "b", "categories": [False, True]},
        {"kind": "number", "column": "c", "bound": 10},
        {"kind": "hashed", "columns": ["d", "e"], "bits": 5},
        {"kind": "text", "column": "f", "bits": 6},
        {"kind": "cross", "columns": ["a", "b"]},
        {"kind": "cross", "columns": ["a", "d"]},
    ]}))  # fmt: skip
    answers = ["c", "none", "", "1, 2.5", "", "", "true", "", "", "5", "1e3", "no", "", "7", ""]
    result = answered(path, *answers)
    assert result.exit_code == 0, result.output
    assert "'c' is a feature; name another column." in result.stderr
    assert "Left out, because a column that it crosses is." in result.stderr
    kept = read_schema(path).parts
    assert [type(part).__name__ for part in kept] == [
        *("Categories", "Categories", "Number", "Text", "Cross")
    ]
    assert kept[0].categories == (1, 2.5)
    assert kept[1].categories == (True,)
    assert (kept[2].center, kept[2].bound) == (5, 1000)
    assert kept[3].bits == 7
