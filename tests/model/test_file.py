"""The model file: what goes in comes out, and no half-written file is left."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dplasso.encoding.origin import Origin
from dplasso.encoding.parts import Categories
from dplasso.encoding.schema import Schema
from dplasso.model import read_model, write_model
from dplasso.phases.released import Released
from model.files import fitted, header_of, same, vertices


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.npz"


def names_in(directory):
    return sorted(entry.name for entry in directory.iterdir())


# --- Round trip --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        fitted(),
        fitted(seeded=True),
        fitted(private=False),
        fitted(names=["age", "größe", "", 'a "b"\n']),
        fitted(params={"classes": [0, 1], "epsilon": math.inf, "delta": np.float64(0.25)}),
        fitted(params={"n_jobs": np.int64(2), "drift_tol": None, "verbose": True}),
        fitted(n_iter=1),
        replace(fitted(), origin=Origin(None, True)),
        replace(fitted(), origin=Origin(Schema((Categories("a", ("é", "b")),), "y"))),
    ],
    ids=[
        *("private", "seeded", "not private", "names", "labels", "numpy", "one step"),
        *("binary", "schema"),
    ],
)
def test_round_trip(model, path):
    write_model(model, path)
    found = read_model(path)
    for name, value in model.params.items():
        if name == "classes" and value is not None:
            assert found.params[name].tolist() == list(value)
        else:
            # A seed is a secret.
            assert found.params[name] == (None if name == "random_state" else value)
    assert found.params.keys() == model.params.keys()
    assert found.digest == model.digest
    assert same(replace(found, params={}), replace(model, params={}))
    assert found.origin == model.origin


def test_a_schema_of_other_columns_is_refused():
    with pytest.raises(ValueError, match="the schema does not make 4 columns"):
        replace(fitted(), origin=Origin(Schema((Categories("a", ("b",)),))))


@pytest.mark.parametrize("labels", [pd.Index([0, 1]), pd.Series([0, 1]), range(2), (0, 1), [0, 1]])
def test_labels_come_in_any_sequence(labels, path):
    write_model(fitted(params={"classes": labels}), path)
    assert header_of(path)["params"]["classes"] == "classes"
    assert read_model(path).params["classes"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": np.array([1j, 2j])}, "cannot be written to a model file"),
        ({"params": {"classes": [1, 2]}}, r"classes=.* was changed after fitting"),
        ({"params": {"solver": object()}}, "cannot hold the parameter solver="),
    ],
)
def test_what_no_file_can_hold_is_refused_and_nothing_written(change, words, path):
    with pytest.raises(ValueError, match=words):
        write_model(fitted(**change), path)
    assert names_in(path.parent) == []


def test_the_seed_is_never_stored(path):
    write_model(fitted(seeded=True), path)
    assert b"12345" not in path.read_bytes()
    assert header_of(path)["params"]["random_state"] == "seeded"
    assert read_model(path).params["random_state"] is None
    assert read_model(path).statement.randomness == "seeded"
    generator = np.random.default_rng(3)
    write_model(fitted(params={"random_state": generator}), path)
    assert header_of(path)["params"]["random_state"] is None


def test_numpy_alone_can_read_it(path):
    model = fitted()
    write_model(model, path)
    with np.load(path, allow_pickle=False) as file:
        assert json.loads(file["header"].tobytes())["magic"] == "dplasso-model"
        (drawn,) = (entry.release for entry in model.released.entries)
        assert file["shares"].tolist() == [1.0]
        assert file["00-vertices-vertex"].tolist() == drawn.vertex.tolist()
        assert file["00-vertices-sign"].tolist() == drawn.sign.tolist()


# --- What a model may hold ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_features": 0}, "number of columns"),
        ({"classes": np.array([1, 1])}, "different labels"),
        ({"classes": np.array([1])}, "two or more"),
        ({"classes": np.array([1, 2, 3])}, "1 outputs do not fit"),
        ({"feature_names": np.array(["a"], dtype=object)}, "names do not fit"),
        ({"released": vertices([0], [1], offset=np.zeros(2))}, "2 outputs do not fit"),
        ({"released": vertices([0], [1], n_features=5)}, "weights are not those of 4 columns"),
        ({"released": Released()}, "has no model"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        replace(fitted(), **change)


# --- Writing -----------------------------------------------------------------------------------
