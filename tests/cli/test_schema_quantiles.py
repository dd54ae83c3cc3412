"""Edges at private quantiles on the command line: released, fitted, charged."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.conftest import done, found, refused
from dplasso.encoding.schema import read_schema
from dplasso.ledger import read_budgets

PARTS = [
    {"kind": "bins", "column": "age", "edges": [50], "confirm": "taken from the records"},
    {"kind": "bins", "column": "income", "edges": [1000]},
    {"kind": "categories", "column": "ward", "categories": ["a", "b"]},
]
BOUNDS = ("--bounds", "age=0,110", "--bounds", "income=0,1e6")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    n = 2000
    pd.DataFrame({
        "age": rng.uniform(18, 95, n).round(1),
        "income": np.exp(rng.normal(10, 1, n)).round(2),
        "ward": rng.choice(["a", "b"], n),
        "who": np.arange(n) // 2,
        "y": rng.integers(0, 2, n),
    }).to_csv(tmp_path / "t.csv", index=False)  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps({"label": "y", "parts": PARTS}))
    return tmp_path


def release(folder, *more):
    given = (folder / "t.csv", "--schema", folder / "s.json", *BOUNDS, "--epsilon", "1")
    return ("schema", "quantiles", *given, "--out", folder / "e.json", *more)


def fit(folder, *more, schema="e.json"):
    given = (folder / "t.csv", "--schema", folder / schema, "--epsilon", "1", "--classes", "0,1")
    return ("fit", *given, "--method", "logistic", "--n-iter", "20", *more)


def test_edges_are_released_and_covered_by_the_fit(folder):
    result = done(*release(folder))
    told = result.stdout.splitlines()
    assert told[0].startswith("age ")
    assert told[2].startswith("noise ")
    assert "Differentially private with epsilon = 0.2011 and delta = 1e-06." in told
    schema = read_schema(folder / "e.json")
    assert schema.confirm == ("", "", "")
    assert schema.edges.columns == ("age", "income")
    assert len(schema.parts[0].edges) > 5
    report = found(*fit(folder, "--model", folder / "m.npz"))["privacy"]
    assert report["epsilon"] <= 1.0
    assert report["edges_mu"] == schema.edges.statement.mu
    assert (
        "private quantiles of the same records"
        in done("show", folder / "m.npz", "--explain").stdout
    )
    page = done("report", folder / "m.npz", "--out", folder / "r.html")
    assert page.exit_code == 0
    assert "private quantiles of the same records" in (folder / "r.html").read_text()
    assert found("evaluate", folder / "m.npz", folder / "t.csv")["n_samples"] == 2000


def test_a_ledger_pays_for_both(folder, run):
    ledger = folder / "l.ledger"
    done("ledger", "init", ledger, "--epsilon", "2", "--delta", "1e-5", "--dataset", "visits")
    paid = ("--ledger", ledger, "--dataset", "visits")
    done(*release(folder))
    refused(run(*fit(folder, *paid, "--model", folder / "m.npz")), "was not charged for it")
    done(*release(folder, *paid, "--force"))
    done(*fit(folder, *paid, "--model", folder / "m.npz"))
    edges, fitted = read_budgets(ledger)[0].entries
    assert edges.charge.purpose == "edges of bins: age, income"
    assert edges.charge.rho * 19 == pytest.approx(fitted.charge.rho, rel=1e-6)


def test_a_store_keeps_what_its_edges_cost(folder):
    done(*release(folder))
    done("convert", folder / "t.csv", folder / "t.store", "--schema", folder / "e.json")
    given = ("--epsilon", "1", "--classes", "0,1", "--method", "logistic", "--n-iter", "20")
    report = found("fit", folder / "t.store", *given)["privacy"]
    assert report["edges_mu"] == read_schema(folder / "e.json").edges.statement.mu


def test_people_with_several_rows(folder, run):
    asked = ("--person-column", "who", "--rows-per-person", "2")
    done(*release(folder, *asked))
    statement = read_schema(folder / "e.json").edges.statement
    assert statement.rows_per_person == 2
    report = found(*fit(folder, *asked))["privacy"]
    assert report["edges_mu"] == statement.mu
    assert report["rows_per_person"] == 2
    unlike = "edges protect {}, but this fit protects {}"
    refused(run(*fit(folder)), unlike.format("people", "single rows"))
    done(*release(folder, "--force"))
    refused(run(*fit(folder, *asked)), unlike.format("single rows", "people"))


def test_what_cannot_be_is_refused(folder, run):
    for more, words, code in (
        (("--bounds", "ward=0,1"), "column 'ward' has no bins in the schema", 1),
        (("--bounds", "age=1,2"), "--bounds names a column twice", 1),
        (("--bounds", "age"), "'age' is not COLUMN=LOW,HIGH", 2),
        (("--share", "0.7"), "share must lie between 0 and 0.5", 1),
        (("--schema", folder / "no.json"), "No such file", 1),
    ):
        refused(run(*release(folder, *more)), words, code=code)
        assert not (folder / "e.json").exists()
    done(*release(folder))
    refused(run(*release(folder)), "e.json exists already")
    again = ("--schema", folder / "e.json", "--out", folder / "f.json")
    refused(run(*release(folder, *again)), "were released before")
    refused(run(*fit(folder, "--neighbors", "replace-one")), "released for --neighbors add-remove")
