"""`--person-column` and `--rows-per-person`: from tables, and from stores made of them."""

import json

import numpy as np
import pytest

from cli.conftest import done, found, refused, run_command, said


@pytest.fixture
def visits(tmp_path):
    """Give a table of 300 visits of 100 patients, and its schema."""
    rng = np.random.default_rng(0)
    lines = ["age,y,patient"]
    for patient in rng.integers(0, 100, 300).tolist():
        age = int(rng.integers(20, 80))
        lines.append(f"{age},{int(age > 50)},p{patient}")
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    part = {"kind": "bins", "column": "age", "edges": [30, 40, 50, 60, 70], "missing": "error"}
    (tmp_path / "schema.json").write_text(json.dumps({"label": "y", "parts": [part]}))
    return tmp_path / "visits.csv", "--schema", tmp_path / "schema.json"


COMMON = ("--epsilon", 5, "--seed", 3)
PERSON = ("--person-column", "patient")


def test_a_table_and_its_store_give_the_same_model(visits, tmp_path):
    done("convert", visits[0], tmp_path / "v.store", *visits[1:], *PERSON)
    rows = ("--rows-per-person", 2, *COMMON)
    one = found("fit", *visits, *PERSON, *rows, "--model", tmp_path / "m.npz")
    other = found("fit", tmp_path / "v.store", *rows)
    assert one["heaviest"] == other["heaviest"]
    assert one["privacy"] == other["privacy"]
    assert one["privacy"]["rows_per_person"] == 2
    # A model is applied to tables of whomever.
    done("evaluate", tmp_path / "m.npz", visits[0])
    told = said("fit", tmp_path / "v.store", *COMMON)
    assert "At most 1 rows of each person entered" in told


def test_a_search_takes_a_store_that_knows_its_people(visits, tmp_path):
    store = tmp_path / "v.store"
    done("convert", visits[0], store, *visits[1:], *PERSON)
    grid = ("--grid", "n-iter=5,9", "--tries", 2, "--law", "geometric", "--metric", "accuracy")
    people = (*grid, "--rows-per-person", 2, *COMMON)
    assert found("tune", store, *people)["privacy"]["rows_per_person"] == 2
    refused(run_command("tune", *visits, *people), "does not say which person each row belongs to")
    nobody = tmp_path / "n.store"
    done("convert", visits[0], nobody, *visits[1:])
    refused(run_command("tune", nobody, *people), "or a store that knows its people")
