"""Fits that use public rows without labels."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

import dplasso
from dplasso import (
    DataError,
    DPLasso,
    DPLassoClassifier,
    DPLogisticRegression,
    Geometry,
    Ledger,
    NoiseWarning,
    PrivateSearch,
    PublicEncoder,
    write_store,
)
from dplasso.cluster import InProcessEngine
from dplasso.ledger import create_ledger
from dplasso.runtime import progress
from fit.cases import releases
from schemas import Hashed, Schema

N, D = 1500, 60


def records(n_rows, seed, n_columns=D, entries=(12.0, 6.0)):
    """Return rows of three subjects, of about as many entries, and which subject each is of."""
    rng = np.random.default_rng(seed)
    subject = rng.integers(0, 3, n_rows)
    likely = np.where(np.arange(n_columns) % 3 == subject[:, np.newaxis], *entries) / n_columns
    return sp.csr_array((rng.random((n_rows, n_columns)) < likely).astype(np.float64)), subject


X, SUBJECT = records(N, 1)
Y = (SUBJECT == 0).astype(int)
PUBLIC = records(600, 2)[0]
GEOMETRY = Geometry.learn(PUBLIC)
TEST = records(300, 3)[0]


def model(epsilon=0.3, **options):
    given = {"classes": [0, 1], "random_state": 0, "public_rows": GEOMETRY}
    return DPLogisticRegression(epsilon, **(given | options))


def auc(fitted, rows, labels):
    margins = fitted.decision_function(rows)
    return np.mean(margins[labels][:, np.newaxis] > margins[~labels])


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
def test_they_help_where_there_are_many_columns(kind):
    many = 2000, (60.0, 30.0)
    (rows, subject), (public, _) = records(N, 1, *many), records(600, 2, *many)
    (test, truth), labels = records(1000, 3, *many), (subject == 0).astype(int)
    geometry = Geometry.learn(public)
    with_them, without = (
        [
            kind(0.3, classes=[0, 1], random_state=seed, public_rows=given).fit(rows, labels)
            for seed in range(2)
        ]
        for given in (geometry, None)
    )
    found = [np.mean([auc(one, test, truth == 0) for one in some]) for some in (with_them, without)]
    assert found[0] > found[1] + 0.05
    assert with_them[0].n_features_in_ == 2000
    assert with_them[0].privacy_.public_rows == geometry.description
    assert np.count_nonzero(sp.csr_array(with_them[0].coef_).data) == (
        200 if kind is DPLassoClassifier else 2000
    )


def test_a_lasso_of_few_columns_has_as_many_as_asked_for():
    fitted = DPLasso(1.0, target_bounds=(0, 2), max_weights=7, public_rows=GEOMETRY).fit(X, SUBJECT)
    assert fitted.coef_.nnz == 7


def test_lengths_of_columns_are_those_of_public_unit_rows():
    unit = PUBLIC / np.sqrt(PUBLIC.multiply(PUBLIC).sum(axis=1))[:, np.newaxis]
    expected = np.asarray((unit * unit).mean(axis=0)).ravel()
    np.testing.assert_allclose(GEOMETRY.lengths**2, expected, rtol=1e-6)


def test_a_cut_keeps_the_columns_that_are_long_in_public_rows():
    energies, long = np.full(D, 1e-20, dtype=np.float32), np.arange(30, 45)
    energies[long] = 1.0
    geometry = replace(GEOMETRY, column_energies=energies)
    fitted = model(max_weights=15, public_rows=geometry).fit(X, Y)
    np.testing.assert_array_equal(releases(fitted)["cut-columns"], long)


def test_rows_geometry_file_and_store_are_one(tmp_path):
    path, first = tmp_path / "geometry", model().fit(X, Y)
    GEOMETRY.save(path)
    public = write_store(tmp_path / "public", PUBLIC, np.zeros(600))
    for given in (PUBLIC, PUBLIC.toarray(), path, str(path), public):
        np.testing.assert_array_equal(model(public_rows=given).fit(X, Y).coef_, first.coef_)
    private = write_store(tmp_path / "private", X, Y)
    np.testing.assert_array_equal(model().fit(private).coef_, first.coef_)


@pytest.mark.parametrize("max_weights", [None, 20])
def test_a_record_without_weight_changes_nothing(max_weights):
    weights = np.append(np.ones(N), 0.0)
    fits = [
        model(max_weights=max_weights).fit(sp.vstack([X, row]), np.append(Y, 0), weights)
        for row in (X[:1], np.ones((1, D)))
    ]
    for name in ("coef_", "intercept_"):
        np.testing.assert_array_equal(*(getattr(fit, name) for fit in fits))


def test_the_model_is_one_of_the_original_columns(tmp_path):
    fitted = model().fit(X, Y)
    assert releases(fitted)["mix-n_directions"] > 0
    assert fitted.coef_.shape == (1, D)
    error = fitted.coef_standard_error_
    assert error.shape == (D,)
    assert error.min() > 0.0
    assert np.ptp(error) > 0.0, "columns with large parts of a direction have more noise"
    lengths = np.sqrt(TEST.multiply(TEST).sum(axis=1))
    margins = fitted.decision_function(TEST) - fitted.intercept_
    expected = math.sqrt(1 - 0.01) * (TEST @ fitted.coef_[0]) / lengths
    np.testing.assert_allclose(margins, expected, rtol=1e-6)
    fitted.save(tmp_path / "model.npz")
    read = dplasso.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(read.decision_function(TEST), fitted.decision_function(TEST))
    np.testing.assert_array_equal(read.coef_standard_error_, error)
    assert len(fitted.top_features(5)) == 5


def test_standard_errors_are_those_of_repeated_fits():
    fits = [model(random_state=s).fit(X, Y) for s in range(10)]
    weights = np.stack([one.coef_[0] for one in fits])
    errors = np.mean([one.coef_standard_error_ for one in fits], axis=0)
    ratio = weights.std(axis=0) / errors
    assert 0.5 < np.median(ratio) < 1.5


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLassoClassifier])
def test_without_privacy_they_are_not_needed(kind):
    given = {"max_weights": 5} if kind is DPLassoClassifier else {}
    one, other = (
        kind(math.inf, public_rows=rows, **given).fit(X, Y).decision_function(TEST)
        for rows in (GEOMETRY, None)
    )
    np.testing.assert_array_equal(one, other)


def test_of_many_records_they_are_left_out():
    rows, labels = sp.vstack([X] * 20).tocsr(), np.tile(Y, 20)
    fitted = model(20.0).fit(rows, labels)
    assert "mix-n_directions" not in releases(fitted)


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_rows_of_another_kind_are_left_out(epsilon):
    rng = np.random.default_rng(7)
    subject = rng.integers(0, 20, 2100)
    # A row has a third of the columns of its subject, and few others.
    likely = np.where(np.arange(1000) % 20 == subject[:, np.newaxis], 0.3, 0.005)
    rows = sp.csr_array((rng.random(likely.shape) < likely).astype(np.float64))
    public, private, labels = rows[:600], rows[600:], subject[600:] % 2
    found = {}
    for name, given in (("same", public), ("other", public[:, rng.permutation(1000)])):
        fits = [
            model(epsilon, public_rows=given, random_state=s).fit(private, labels) for s in range(3)
        ]
        held = [releases(fitted) for fitted in fits]
        found[name] = [(one["mix-n_directions"], one["mix-overlap"]) for one in held]
    assert all(directions > 0 and overlap > 0.6 for directions, overlap in found["same"])
    assert np.mean([overlap for _, overlap in found["other"]]) < 0.3
    assert sum(directions == 0 for directions, _ in found["other"]) >= (2 if epsilon < 1.0 else 3)


def test_the_statement_and_the_ledger_name_them(tmp_path):
    path = tmp_path / "budget.db"
    create_ledger(path, 2.0, 1e-5)
    statement = model(0.3, random_state=None, ledger=path).fit(X, Y).privacy_
    assert statement.public_rows == GEOMETRY.description
    assert f"600 public rows without labels (digest {GEOMETRY.digest[:16]})" in statement.text()
    assert "not protected by this fit" in statement.text()
    assert json.loads(statement.to_json())["public_rows"] == GEOMETRY.description
    assert "public rows" in {one.name for one in statement.releases}
    (entry,) = Ledger(path).budget().entries
    assert GEOMETRY.digest[:16] in entry.charge.prior


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"public_rows": PUBLIC[:, :-1]}, "59 columns and the data have 60"),
        ({"public_rows": Geometry.learn(PUBLIC[:, :-1])}, "59 columns and the data have 60"),
        ({"public_rows": PUBLIC[:5]}, "5 rows"),
        ({"row_norm": 2.0}, "row_norm=2"),
        ({"public_rows": "nowhere.npz"}, r"public_rows is the path .*nowhere\.npz"),
    ],
)
def test_what_cannot_be_used_is_refused(options, told):
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        model(**options).fit(X, Y)


def test_what_does_not_go_with_them_is_refused():
    with pytest.raises(ValueError, match="leave engine out"):
        model().fit([X[:700], X[700:]], [Y[:700], Y[700:]], engine=InProcessEngine())
    with pytest.raises(ValueError, match="only DPLogisticRegression learns several"):
        DPLassoClassifier(1.0, public_rows=GEOMETRY).fit(X, np.eye(3, dtype=int)[SUBJECT])
    named = pandas.DataFrame(X.toarray(), columns=[f"column {j}" for j in range(D)])
    with pytest.raises(ValueError, match="column names of the data"):
        model(public_rows=pandas.DataFrame(PUBLIC.toarray())).fit(named, Y)


@pytest.mark.parametrize("name", ["public_rows", "public_data"])
def test_private_rows_are_not_public_ones(name):
    """Where labels alone are private, rows without labels are public."""
    public = X if name == "public_rows" else (X, Y)
    given = {"public_rows": None, name: public}
    search = PrivateSearch(model(**given, random_state=None), {}, 9.0, tries=2)
    for refused in (model(**given), search):
        with pytest.raises(DataError, match=f"{name} holds the private rows of the fit"):
            refused.fit(X, Y)
    if name == "public_rows":
        assert model(**given, neighbors="label").fit(X, Y).n_features_in_ == D


def test_so_few_records_that_they_tell_nothing_alone_are_no_cause_for_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseWarning)
        model(0.1).fit(X[:300], Y[:300])
    with pytest.warns(NoiseWarning):
        model(0.1, public_rows=None).fit(X[:300], Y[:300])


def test_a_table_is_encoded_by_the_schema_of_the_records():
    rng = np.random.default_rng(6)
    tables = [
        pandas.DataFrame({name: rng.choice(list("abcdefgh"), size) for name in ("one", "two")})
        for size in (500, 200)
    ]
    encoder = PublicEncoder(Schema((Hashed(("one", "two"), 8, missing="ignore"),)))
    rows, public = (encoder.fit_transform(table) for table in tables)
    labels, expected = rng.integers(0, 2, 500), Geometry.learn(public).description
    for given in (tables[1], public):
        assert model(public_rows=given).fit(rows, labels).privacy_.public_rows == expected
    steps = Pipeline([("encode", encoder), ("model", model(public_rows=tables[1]))])
    assert steps.fit(tables[0], labels)[-1].privacy_.public_rows == expected
    other = PublicEncoder(Schema((Hashed(("one",), 8, missing="ignore"),)))
    with pytest.raises(ValueError, match="encoded by a different schema"):
        model(public_rows=other.fit_transform(tables[1])).fit(rows, labels)


def test_texts_are_refused_with_the_way_to_encode_them():
    hashing = HashingVectorizer(n_features=64)
    texts = [f"word{k % 7} word{k % 5} word{k % 3}" for k in range(200)]
    steps = Pipeline([("hash", hashing), ("model", model(public_rows=texts))])
    with pytest.raises(TypeError, match=r"pipeline\[:-1\]\.transform\(rows\)"):
        steps.fit(texts, np.arange(200) % 2)
    steps.set_params(model__public_rows=steps[:-1].transform(texts))
    assert "200 public rows" in steps.fit(texts, np.arange(200) % 2)[-1].privacy_.public_rows


def test_learning_that_takes_long_says_how_far_it_is(monkeypatch, caplog):
    monkeypatch.setattr(progress, "SILENT", 0.0)
    with caplog.at_level("INFO", logger="dplasso"):
        model(public_rows=PUBLIC).fit(X, Y)
    steps = [one for one in caplog.messages if "directions of the public rows" in one]
    assert "6 of 6 steps" in steps[-1]
