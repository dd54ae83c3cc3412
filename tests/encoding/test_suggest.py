"""Drafts of schemas: reasonable for a person to edit, and marked as not private."""

import numpy as np
import pyarrow as pa
import pytest

from dplasso.encoding.parts import Bins, Categories, Hashed, Text
from dplasso.encoding.schema import schema_from_json
from dplasso.encoding.suggest import NOTE, suggest_schema
from dplasso.errors import DataError


def drafted(values, **table):
    schema = suggest_schema(pa.table({"x": values} | table), None)
    assert schema_from_json(schema.to_json()) == schema
    return schema.parts[0]


def test_kinds_of_columns():
    rng = np.random.default_rng(0)
    assert drafted([True, None, False]) == Categories("x", (False, True))
    assert drafted([3, 1, 1, None]) == Categories("x", (1, 3))
    assert drafted(["b", "a", "", None]) == Categories("x", ("a", "b"))
    assert drafted(pa.array(["b", "a"]).dictionary_encode()) == Categories("x", ("a", "b"))
    assert drafted(["1", "30", "", "2"]) == Categories("x", (1, 2, 30))
    ages = drafted(rng.uniform(0, 99, 5000))
    assert ages.edges == tuple(range(0, 110, 10))
    incomes = drafted(np.exp(rng.normal(8, 3, 5000)))
    assert isinstance(incomes, Bins)
    assert incomes.edges[1] == pytest.approx(3 * incomes.edges[0])
    assert isinstance(drafted([0.5, 0.5, 0.5]), Bins)
    words = [f"w{k % 40}" for k in range(80)]
    assert drafted(words) == Hashed(("x",), 9)
    assert drafted([f"{word} is what was said" for word in words]) == Text("x")


def test_label_and_identifiers_are_left_out():
    ids = [f"id{k}" for k in range(100)]
    table = pa.table({"id": ids, "when": pa.array([0] * 100, pa.date32()), "a": [1] * 100,
                      "label": [0, 1] * 50})  # fmt: skip
    schema = suggest_schema(table, None)
    assert schema.columns == ["a"]
    assert schema.label == "label"
    assert schema.note == f"{NOTE} (left out: id, when)"
    assert suggest_schema(table, "a").columns == ["label"]
    with pytest.raises(DataError, match="no column 'y'; there are"):
        suggest_schema(table, "y")
    with pytest.raises(DataError, match="no column of numbers, words or bools"):
        suggest_schema(table.select(["id", "label"]), None)
