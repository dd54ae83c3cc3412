"""``--prior``, ``--public-data``, ``--public-rows``: public knowledge, and what is said of it."""

import pytest

import dplasso
from cli.conftest import done, found, new_ledger, said

FAST = ("--epsilon", 1)


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("name,weight\n0,4.0\n1,-4.0\n(intercept),0.5\n")
    return path


def test_a_table_of_weights_by_number(train, weights, tmp_path):
    model, ledger = tmp_path / "m.npz", new_ledger(tmp_path / "l", 9, 1e-5)
    done("fit", train, *FAST, "--prior", weights, "--model", model, "--ledger", ledger)
    told = "starts from a table of weights, 2 of 30 columns by number (digest "
    assert told in said("ledger", "show", ledger)
    held = dplasso.load(model).model_.prior
    assert held.weights[0, :3].tolist() == [4.0, -4.0, 0.0]
    assert held.standard_error is None
    document = found("show", model)
    assert document["facts"]["starts from"] == held.description
    assert document["intercept"] == pytest.approx(dplasso.load(model).intercept_[0])
    done("report", model, "--out", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "the people behind it are not protected by this fit" in page
    assert "corrected by" in page


def test_a_table_s_columns_go_by_name(visits, schema, tmp_path):
    public, table, model = (tmp_path / name for name in ("public.csv", "w.csv", "m.npz"))
    public.write_text("".join(visits.read_text().splitlines(keepends=True)[:61]))
    private = visits, "--schema", schema, *FAST
    done("fit", *private, "--public-data", public, "--model", model)
    told = dplasso.load(model).privacy_.prior
    assert told.startswith("a LogisticRegression of scikit-learn trained on 60 public rows with C")
    table.write_text("name,weight\nage<20,2\nward=eyes,-2\nward=lungs,1\n")
    text = said("fit", *private, "--prior", table)
    assert "a table of weights, 2 of 71 columns matched by name, 1 of its own left out" in text
    # A model knows the schema of its columns.
    assert "all 71 columns in their order" in said("fit", *private, "--prior", model)
