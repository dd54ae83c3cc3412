"""The model file: what goes in comes out, and nothing but a whole, undamaged file is a model."""

import io
import math
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dplasso import ModelFileError, load
from dplasso.model import read_model, write_model
from estimators.kinds import few, make
from model.files import (
    STEPS,
    fitted,
    header_of,
    npy,
    parts_of,
    release_again,
    rewrite,
    same,
    vertices,
)
from schemas import Categories, Origin, Schema


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.npz"


def names_in(directory):
    return sorted(entry.name for entry in directory.iterdir())


# --- Round trip --------------------------------------------------------------------------------


PARAMS = {"classes": pd.Index([0, 1]), "epsilon": math.inf, "delta": np.float64(0.25)}
PARAMS |= {"n_jobs": np.int64(2), "drift_tol": None, "verbose": True}
NAMES = ["age", "größe", "", 'a "b"\n']


@pytest.mark.parametrize(
    ("options", "origin"),
    [
        ({"params": PARAMS, "names": NAMES}, None),
        ({}, Origin(None, True)),
        ({}, Origin(Schema((Categories("a", ("é", "b")),), "y"))),
    ],
    ids=["parameters and names", "binary", "schema"],
)
def test_round_trip(options, origin, path):
    model = fitted(**options)
    model = model if origin is None else replace(model, origin=origin)
    write_model(model, path)
    found = read_model(path)
    # Which ledger paid concerns the curator alone.
    assert model.params.keys() - found.params.keys() == {"ledger"}
    for name in found.params:
        value = model.params[name]
        if name == "classes" and value is not None:
            assert found.params[name].tolist() == list(value)
        else:
            # A seed is a secret.
            assert found.params[name] == (None if name == "random_state" else value)
    assert found.digest == model.digest
    assert same(replace(found, params={}), replace(model, params={}))
    assert found.origin == model.origin


def test_a_schema_of_other_columns_is_refused():
    with pytest.raises(ValueError, match="the schema does not make 4 columns"):
        replace(fitted(), origin=Origin(Schema((Categories("a", ("b",)),))))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"params": {"classes": [1, 2]}}, r"classes=.* was changed after fitting"),
        ({"params": {"solver": object()}}, "cannot hold the parameter solver of type object"),
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


# --- What a model may hold ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_features": 0}, "number of columns"),
        ({"classes": np.array([1, 1])}, "different labels"),
        ({"classes": np.array([1])}, "two or more"),
        ({"classes": np.array([1, 2, 3])}, "1 outputs do not fit"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        replace(fitted(), **change)


@pytest.mark.parametrize(
    ("releases", "words"),
    [
        ([vertices([0], offset=np.zeros(2))], "2 outputs do not fit"),
        ([vertices([4, 4], constant=0.0)], "outside the 4 columns"),
        ([], "not complete has no model"),
        ([("count", {"counts": np.array([40.0, 50.0]), "deviation": 3.0})], "has no model"),
    ],
)
def test_releases_that_make_no_model_are_refused(releases, words, path):
    write_model(fitted(), path)
    release_again(path, *releases)
    with pytest.raises(ModelFileError, match=words):
        read_model(path)


# --- Damage ------------------------------------------------------------------------------------


def is_refused_or_same(path, content, original=None):
    """Return whether a file is refused, or read as the original where there is one."""
    path.write_bytes(content)
    try:
        found = read_model(path)
        return original is not None and same(found, original)
    except ModelFileError as error:
        # Refused in one line that names the file.
        return str(error).startswith(f"{path} ") and "\n" not in str(error)


def test_a_flipped_byte_is_found_or_does_not_matter(path):
    write_model(fitted(private=False), path)
    original, content = read_model(path), path.read_bytes()
    start = content.index(b'{"magic"')
    # Up to the next member of the archive: the archive's own notes on it do not matter.
    end = content.index(b"PK\x03\x04", start)
    assert end > start + 500
    # In every field of the archive; fewer in the header, which is text under one checksum.
    for place in range(0, len(content), 2):
        if start < place < end - 8 and place % 8:
            continue
        flipped = bytearray(content)
        flipped[place] ^= 0x01 if place % 4 else 0xFF
        unchanged = None if start <= place < end else original
        assert is_refused_or_same(path, flipped, unchanged), place


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def zipped(**members) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


class Bomb:
    """Unpickling it would be noticed."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


FOREIGN = {
    "empty": b"",
    "text": b"+1 1:0.5 7:1\n-1 2:1\n",
    "pickle": pickle.dumps({"coef": 1}),
    "pickle bomb": pickle.dumps(Bomb()),
    "other npz": npz(data=np.ones(3), indices=np.arange(3)),
    "header of numbers": npz(header=np.arange(5)),
    "empty header": npz(header=np.frombuffer(b"{}", dtype=np.uint8)),
    "header list": npz(header=np.frombuffer(b"[1]", dtype=np.uint8)),
    "other magic": npz(header=np.frombuffer(b'{"magic": "other"}', dtype=np.uint8)),
    "no text": npz(header=np.frombuffer(b"\xff\xfe", dtype=np.uint8)),
    "empty zip": zipped(),
    "no array": zipped(header=b"not an array"),
    "object array": zipped(header=npy([Bomb()], allow_pickle=True)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(path, name):
    path.write_bytes(FOREIGN[name])
    with pytest.raises(ModelFileError, match=r"model\.npz .*\.$"):
        load(path)


@pytest.mark.parametrize(
    ("found", "advice"), [(4, "install a newer"), (1, "load it with dplasso 0.3")]
)
def test_another_version_is_named_before_anything_else(path, found, advice):
    write_model(fitted(), path)

    def change(header):
        header.clear()
        header.update(magic="dplasso-model", version=found)

    rewrite(path, change, something=np.arange(3))
    with pytest.raises(ModelFileError, match=rf"{found}.*{advice}"):
        read_model(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(version=0),
        lambda header: header.update(version="1"),
        lambda header: header.pop("version"),
        lambda header: header.pop("written_by"),
        lambda header: header.update(more=1),
        lambda header: header.update(n_features="4"),
        lambda header: header.update(n_features=3),
        lambda header: header.update(feature_names="abcd"),
        lambda header: header.update(feature_names=[1, 2, 3, 4]),
        lambda header: header.update(feature_names=["a"]),
        lambda header: header.update(classes={"dtype": "<i8", "values": [1]}),
        lambda header: header.update(classes={"dtype": "object", "values": [None, 1]}),
        lambda header: header.update(params=[]),
        lambda header: header["params"].update(random_state=5),
        lambda header: header["params"].update(ledger=None),
        lambda header: header["params"].update(l1_radius={"tuple": 1}),
        lambda header: header["params"].update(l1_radius={"code": "1"}),
        lambda header: header["params"].update(l1_radius={"float": "wide"}),
        lambda header: header["params"].update(classes="vertex"),
        lambda header: header["params"].update(classes={"float": "1", "more": 1}),
        lambda header: header["params"].update(classes=1e308),
        lambda header: header["params"].update(l1_radius={"labels": "classes"}),
        lambda header: header["privacy"]["releases"][0].update(numbers=None),
        lambda header: header["privacy"].pop("epsilon"),
        {"00-vertices-vertex": np.zeros(STEPS, dtype=np.int32)},
        {"00-vertices-vertex": np.zeros(STEPS, dtype=">i8")},
        {"00-vertices-vertex": np.zeros((STEPS, 1), dtype=np.int64)},
        {"00-vertices-vertex": np.zeros(STEPS + 1, dtype=np.int64)},
        {"00-vertices-vertex": np.full(STEPS, 99, dtype=np.int64)},
        {"00-vertices-sign": np.zeros(STEPS, dtype=np.int8)},
        {"00-vertices-sign": np.full(STEPS, -128, dtype=np.int8)},
        {"00-vertices-vertex": np.array([-1, 0, 0, 0, 0, 0])},
        {"00-vertices-vertex": npy([Bomb()], allow_pickle=True)},
        {"00-vertices-radius": np.array(-1.0)},
        {"00-vertices-late_start": np.array(-1)},
        {"00-vertices-offset": np.array([np.nan])},
        {"more": np.zeros(1)},
        {"shares": np.array([1.5])},
        {"shares": np.array([-0.1])},
        {"shares": np.array([np.nan])},
        {"shares": np.array(0.1)},
        {"shares": None},
        {"shares": np.zeros(2, dtype=np.float32)},
        {"01-vertices-sign": np.ones(STEPS, dtype=np.int8)},
        {"00-count-deviation": np.zeros(())},
        {"x0-count-counts": np.zeros(1)},
    ],
)
def test_a_header_or_an_array_that_makes_no_sense_is_refused(path, change):
    write_model(fitted(), path)
    rewrite(path, change) if callable(change) else rewrite(path, **change)
    with pytest.raises(ModelFileError):
        read_model(path)


def test_other_signs_under_the_old_checksum_are_refused(path):
    # The archive's own checksums are right; only the file's digest tells.
    write_model(fitted(), path)
    with np.load(path) as file:
        members = parts_of(path) | {"sha256": npy(file["sha256"])}
        turned = {"00-vertices-sign": npy(-file["00-vertices-sign"])}
    assert is_refused_or_same(path, zipped(**members), read_model(path))
    path.write_bytes(zipped(**members | turned))
    with pytest.raises(ModelFileError, match="checksum"):
        read_model(path)


def test_nothing_is_unpacked(path):
    write_model(fitted(), path)
    rewrite(path, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed"):
        read_model(path)


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ({"no_such_parameter": 1}, "no valid model"),
        ({"row_norm": "long"}, "row_norm must be"),
        ({"l1_radius": 1.0}, "no estimator has these parameters"),
        ({"epsilon": -1.0}, "epsilon must be"),
    ],
)
def test_a_file_that_makes_no_fitted_estimator_is_refused(tmp_path, parameter, reason):
    path = tmp_path / "model.npz"
    make("logistic").fit(*few("logistic")).save(path)
    model = read_model(path)
    write_model(replace(model, params=model.params | parameter), path)
    with pytest.raises(ModelFileError, match=reason):
        load(path)
