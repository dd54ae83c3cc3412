"""A store that Python writes is what a fit would have taken, and a mistake leaves none."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn

from dplasso import (
    DataError,
    DPLasso,
    DPLogisticRegression,
    PublicEncoder,
    StoreError,
    open_store,
    write_store,
)
from dplasso.cluster import ThreadEngine
from dplasso.runtime import progress as said
from estimators.kinds import few, numbers
from people import hashes_of
from schemas import Categories, Number, Schema, origin_of

X, WORDS = few()
Y = np.asarray(WORDS == "yes", np.int64)
WHOSE = np.arange(len(Y)) // 3
LABELS = {
    "whole numbers": Y,
    "a list": Y.tolist(),
    "booleans": Y == 1,
    "texts": np.where(Y == 1, "yes", "no").tolist(),
    "objects": np.where(Y == 1, "yes", "no").astype(object),
    "categories": pd.Series(np.where(Y == 1, "yes", "no"), dtype="category"),
    "long doubles": Y.astype(np.longdouble),
    "an empty text": np.where(Y == 1, "", "é"),
}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "rows.store"


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_every_form_come_back(labels, place):
    store = write_store(place, X, labels)
    assert store.y.tolist() == list(labels)
    assert store.y.dtype.kind == np.array(list(labels)).dtype.kind
    model = DPLogisticRegression(5.0, classes=np.unique(labels).tolist(), random_state=0)
    again = sklearn.clone(model).fit(open_store(place, verify=True))
    np.testing.assert_array_equal(numbers(again), numbers(model.fit(X, labels)))
    assert again.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("form", ["csr", "coo", "csc", "frame", "list", "twice", "float16"])
def test_a_fit_on_the_store_has_the_same_bits(form, place):
    rows = {
        "frame": lambda: pd.DataFrame(X.toarray()).add_prefix("x"),
        "list": lambda: X.toarray().tolist(),
        "twice": lambda: sp.csr_array((X.data, X.indices // 2 * 2, X.indptr), shape=X.shape),
        "float16": lambda: X.toarray().astype(np.float16),
    }.get(form, lambda: X.asformat(form))()
    targets = np.linspace(-1, 1, len(Y))
    model = DPLasso(5.0, target_bounds=(-1, 1), random_state=0)
    again = sklearn.clone(model).fit(write_store(place, rows, targets))
    np.testing.assert_array_equal(numbers(again), numbers(model.fit(rows, targets)))
    assert again.privacy_ == model.privacy_


def test_names_of_columns_are_kept(place):
    frame = pd.DataFrame(X.toarray()).add_prefix("x")
    store, other = write_store(place, frame, Y), write_store(place.with_name("o"), X[:20], Y[:20])
    model = DPLogisticRegression(5.0, classes=[0, 1])
    for rows in (store, [store]):
        engine = ThreadEngine() if isinstance(rows, list) else None
        assert model.fit(rows, engine=engine).feature_names_in_.tolist() == list(frame)
    with pytest.raises(DataError, match="o does not have the column names of"):
        model.fit([store, other], engine=ThreadEngine())


@pytest.mark.parametrize("kind", [str, int, float])
def test_groups_are_hashed_with_their_type(kind, place):
    groups = [*map(kind, WHOSE)]
    store = write_store(place, X, Y, groups=groups)
    names = groups if kind is str else WHOSE
    expected = hashes_of(names) & [-1, -2] | [0, kind is str]
    np.testing.assert_array_equal(store.person_hashes.reshape(-1, 2), expected)


def test_it_keeps_the_schema_and_whether_the_columns_are_public(place):
    schema = Schema((Categories("city", ("a", "b")), Number("age", 100.0)), "y")
    table = pd.DataFrame({"city": ["a", "b"] * 20, "age": range(40)})
    store = write_store(place, PublicEncoder(schema).transform(table), np.arange(40) % 2)
    assert origin_of(store).schema == schema
    assert store.columns_declared
    rows = X.copy()
    rows.dplasso_origin = {"schema": None, "binarize": True, "columns_declared": False}
    store = write_store(place, rows, Y, force=True)
    assert not store.columns_declared
    assert origin_of(store) == origin_of(rows)


MISTAKES = {
    "x": ({"X": np.full(X.shape, np.nan)}, "Input X contains NaN: encode the table"),
    "few labels": ({"y": Y[:-1]}, "inconsistent numbers of samples"),
    "no labels": ({"y": None}, "y is None; pass a label or a target for each row"),
    "two columns": ({"y": np.stack([Y, Y], 1)}, "y should be a 1d array"),
    "a label missing": ({"y": [None, *Y[1:]]}, "y mixes types, or holds a value that is not"),
    "two types": ({"y": ["0", *Y[1:].tolist()]}, "y holds texts and other values"),
    "a boolean": ({"y": [True, *Y[1:].tolist()]}, "y mixes types, or holds"),
    "a rounded label": ({"y": [0.5, 2**60 + 1, *Y[2:].tolist()]}, "y mixes types, or holds"),
    "a cut text": ({"y": ["a\0", *["b"] * (len(Y) - 1)]}, "y mixes types, or holds"),
    "dates": ({"y": Y.astype("M8[ns]")}, "y mixes types, or holds"),
    "few people": ({"groups": [1, 2]}, r"groups has the shape \(2,\); pass one entry for each"),
    "two ids": ({"groups": ["a", *WHOSE[1:]]}, "groups, row 2: the id has another type"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_and_leaves_nothing(mistake, words, place):
    with pytest.raises(DataError, match=words):
        write_store(place, **{"X": X, "y": Y} | mistake)
    assert not [*place.parent.iterdir()]


def test_a_store_is_replaced_only_if_asked(place):
    store = write_store(place, X, Y)
    with pytest.raises(StoreError, match=r"exists already; pass force=True to replace it"):
        write_store(place, X, 1 - Y)
    with pytest.raises(DataError, match=r"X is a store already; copy its folder, or pass X.tocsr"):
        write_store(place, store, Y, force=True)
    with pytest.raises(DataError, match="a store is made on a disk"):
        write_store("s3://bucket/rows.store", X, Y)
    assert open_store(place).y.tolist() == Y.tolist()
    assert write_store(place, store.tocsr(), 1 - Y, force=True).y.tolist() == (1 - Y).tolist()


def test_long_work_says_how_far_it_has_come(place, monkeypatch):
    lines, steps = [], []
    monkeypatch.setattr(said, "SILENT", 0.0)
    monkeypatch.setattr(said, "say_or_log", lines.append)
    write_store(place, X, Y)
    assert lines == [f"dplasso: writing rows.store, {len(Y)} of {len(Y)} rows"]
    write_store(place, X, Y, force=True, progress=lambda *now: steps.append(now))
    assert steps == [(len(Y), len(Y))]
    assert len(lines) == 1


def test_labels_of_others_change_nothing_of_a_record(tmp_path):
    """Its label, id and entries have the same bits whoever stands beside it."""
    small = write_store(tmp_path / "a", X[:2], [1, 0], groups=["p", "q"])
    other = X[2:4].astype(np.float64) * 0.1
    large = write_store(
        tmp_path / "b", sp.vstack([X[:2], other], format="csr"), [1, 0, 0.5, 9], groups=[*"pqrr"]
    )
    assert large.y[:2].tolist() == small.y.tolist()
    np.testing.assert_array_equal(large.person_hashes[:4], small.person_hashes)
    np.testing.assert_array_equal(large.tocsr()[:2].toarray(), small.tocsr().toarray())
