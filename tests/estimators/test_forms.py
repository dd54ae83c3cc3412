"""What must not change the result changes not a bit of it, and nothing of the caller's changes."""

import numpy as np
import pytest

from dplasso import DataError, open_store, write_store
from estimators.kinds import (
    each_classifier,
    each_sort,
    few,
    fit_of,
    fitted,
    make,
    numbers,
    outputs,
    sort_of,
)
from neighbours import INPUT_KINDS, common_records, explicit
from small_fits import short_runs

INF = float("inf")
VERTICES = {"n_iter": 12, "feature_bound": 1.2}
# Forms that the loop of vertices is compiled for anyway; `test_replay.py` steps through the others.
COMPILED = ("csr float64", "csc float32", "dense float32, by columns", "unsorted", "list")
COMPILED += ("explicit zeros", "duplicate entries", "store")


@pytest.fixture(autouse=True)
def few_steps():
    """What changes a bit of a fit changes it in any of its steps."""
    with short_runs():
        yield


def same(one, other):
    np.testing.assert_array_equal(numbers(other), numbers(one))
    assert getattr(other, "transcript_", None) == getattr(one, "transcript_", None)
    assert other.privacy_ == one.privacy_


@each_sort
def test_every_layout_store_and_number_of_threads_gives_the_same_bits(sort, tmp_path):
    first, (_, X, y) = fitted(sort), sort_of(sort)
    store = write_store(tmp_path / "rows.store", X, y.reshape(len(y), -1)[:, 0])
    for rows, labels in [(X.tocsc(), y), (X.toarray(), y), (store, y if y.ndim > 1 else None)]:
        again = fit_of(sort, rows, labels, n_jobs=2)
        same(first, again)
        np.testing.assert_allclose(outputs(again, rows), outputs(first, X), rtol=1e-12, atol=1e-12)
    if hasattr(first, "history_"):
        np.testing.assert_array_equal(again.history_.objective, first.history_.objective)
        np.testing.assert_array_equal(again.history_.gap, first.history_.gap)


@pytest.mark.parametrize("kind", ["mixed", "binary"])
@pytest.mark.parametrize(
    ("estimator", "options"),
    [("frank-wolfe", VERTICES), ("logistic", {}), ("logistic", {"max_weights": 3})],
    ids=["vertices", "dense", "short list"],
)
def test_so_does_every_form_of_input(kind, estimator, options):
    X, y = common_records(kind)
    asked = {"random_state": 0} | options
    first = make(estimator, **asked).fit(X, y)
    for place, (name, (dtype, form)) in enumerate(INPUT_KINDS.items()):
        if options is VERTICES and name not in COMPILED:
            continue
        given = form(X.astype(dtype))
        again = make(estimator, n_jobs=1 + place % 3, **asked).fit(given, y)
        np.testing.assert_array_equal(numbers(again), numbers(first), err_msg=name)
        np.testing.assert_array_equal(outputs(again, given), outputs(again, X), err_msg=name)


@pytest.mark.parametrize("kind", ["binary", "mixed"])
def test_stored_zeros(kind):
    X, y = few()
    X = X != 0 if kind == "binary" else X
    X = X.toarray().astype(np.float32)
    full = explicit(X)
    assert full.nnz == 1440
    for options in ({"drift_tol": 0.01}, {"drift_tol": None}, {"solver": "standard"}):
        model = make("frank-wolfe", INF, n_iter=30, **options)
        assert model.fit(full, y).transcript_ == model.fit(X, y).transcript_


@each_classifier
@pytest.mark.parametrize("form", ["csr float32", "unsorted", "duplicate entries", "csc float32"])
def test_nothing_of_the_caller_s_changes(kind, form):
    X, y = common_records()
    X = INPUT_KINDS[form][1](4.0 * X)
    declared = np.array([0, 1])
    parts = [X.data, X.indices, X.indptr, y, declared]
    before = [part.tobytes() for part in parts]
    model = make(kind, classes=declared, random_state=4)
    params = model.get_params()
    first = numbers(model.fit(X, y))
    model.predict_proba(X)
    assert [part.tobytes() for part in parts] == before
    # Not even put in another place.
    assert parts[0] is X.data
    assert parts[1] is X.indices
    assert model.get_params() == params
    assert model.classes is declared
    np.testing.assert_array_equal(numbers(model.fit(X, y)), first)


# --- Stores --------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    return write_store(tmp_path / "records.store", *few())


def test_labels_that_do_not_fit_a_store_are_refused(store):
    X, y = few()
    for given, labels, words in [
        (store, y[:-1], "inconsistent numbers of samples"),
        (store, np.where(y == "yes", np.nan, 0.0), "NaN"),
        (store, np.column_stack([y, y]), "must hold 0 and 1 only"),
        (X, None, "y"),
    ]:
        with pytest.raises((DataError, ValueError), match=words):
            make("logistic").fit(given, labels)
    with pytest.raises(DataError, match=r"12 columns.*trained on 11.*--features"):
        make("logistic").fit(X[:, :-1], y).predict(store)


def test_a_damaged_store_is_not_predicted(store):
    model = make("logistic").fit(store)
    with (store.path / "rows.values.npy").open("r+b") as file:
        file.seek(128)
        file.write(np.float32(np.nan).tobytes())
    with pytest.raises(DataError, match="is damaged"):
        outputs(model, open_store(store.path))
