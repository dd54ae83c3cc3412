"""Messages end in logs: none quotes an entry, a label, a weight or an id of a private record.

A secret word or number stands in every place of a record that can be wrong; whatever is said of it,
by whichever way in, holds neither.
"""

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from dplasso import (
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivateSearch,
    PublicEncoder,
    private_score,
    write_store,
)
from dplasso.cluster import InProcessEngine, ThreadEngine
from secrets_in_messages import NUMBER, WORD, quotes_nothing, refused, told_by

X = np.random.default_rng(0).random((12, 2))
Y = np.arange(12) % 2
CLASSIFIERS = (DPLassoClassifier(classes=[0, 1]), DPLogisticRegression(classes=[0, 1]))
REGRESSORS = (DPLasso(target_bounds=(0, 1)), DPLinearRegression(target_bounds=(0, 1)))
ESTIMATORS = CLASSIFIERS + REGRESSORS


class Strange:
    """Rows that say what they hold when they cannot be read."""

    shape = (12, 2)

    def __len__(self):
        return 12

    def __array__(self, *_, **__):
        raise ValueError(f"cannot convert {WORD}")


def with_secret(value, kind=object):
    table = X.astype(kind)
    table[7, 1] = value
    return table


ROWS = {
    "texts": [WORD] * 12,
    "a text among numbers": with_secret(WORD),
    "a list of lists": with_secret(WORD).tolist(),
    "strings": np.full((12, 2), WORD),
    "bytes": np.full((12, 2), WORD.encode()),
    "a set": with_secret({WORD}),
    "a dict": with_secret({WORD: NUMBER}),
    "a frame": pandas.DataFrame(with_secret(WORD), columns=["a", "b"]),
    "categories": pandas.DataFrame({"a": pandas.Categorical([WORD] * 12), "b": X[:, 0]}),
    "text of a frame": pandas.DataFrame({"a": [WORD] * 12, "b": X[:, 0]}, dtype="string"),
    "polars": polars.DataFrame({"a": [WORD] * 12, "b": X[:, 0]}),
    "times": pandas.DataFrame({"a": [pandas.Timestamp("2091-03-17")] * 12, "b": [WORD] * 12}),
    "complex": with_secret(complex(NUMBER, 1), complex),
    "one dimension": np.full(12, float(NUMBER)),
    "three dimensions": np.full((12, 2, 2), float(NUMBER)),
    "a number": float(NUMBER),
    "ragged": [[NUMBER], *([NUMBER, NUMBER] for _ in range(11))],
    "nan": np.where(np.arange(24).reshape(12, 2) == 5, np.nan, float(NUMBER)),
    "huge": with_secret(10**400 + NUMBER),
    "says it itself": Strange(),
    "too few": np.full((11, 2), float(NUMBER)),
    "sparse": sp.csr_array(with_secret(complex(NUMBER, 1), complex)),
}
LABELS = {
    "a text": np.array([*Y[:-1].astype(str), WORD]),
    "a number": np.array([*Y[:-1], NUMBER]),
    "an object": np.array([*Y[:-1], WORD], dtype=object),
    "a set": [*Y[:-1].tolist(), {WORD}],
    "complex": Y + complex(NUMBER, 1),
    "two columns": np.full((12, 2), NUMBER),
    "ragged": [[NUMBER], *([NUMBER, NUMBER] for _ in range(11))],
    "nan": np.array([*np.full(11, float(NUMBER)), np.nan]),
    "missing": [None, *([WORD] * 11)],
    "strange": Strange(),
}


SEARCHES = (
    PrivateSearch(CLASSIFIERS[1], {"n_iter": [1, 2]}),
    PrivateSearch(REGRESSORS[1], {"n_iter": [1, 2]}, metric="mae"),
)


@pytest.fixture(scope="module")
def fitted():
    """Give a model of two columns."""
    return DPLogisticRegression(50.0, classes=[0, 1]).fit(X, Y)


def no_fit(estimators, *given, engines=None, **options):
    """Fit each of some estimators, by each engine if any are given; all fits must be refused."""
    for estimator in estimators:
        for engine in engines or [None]:
            own = options | ({} if engine is None else {"engine": engine})
            refused(lambda estimator=estimator, own=own: estimator.fit(*given, **own))


@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_not_quoted(fitted, rows, tmp_path):
    given = ROWS[rows]
    no_fit(ESTIMATORS + SEARCHES, given, Y)
    no_fit(ESTIMATORS, [X, given], [Y, Y], engines=(InProcessEngine(), ThreadEngine()))
    refused(lambda: private_score(fitted, given, Y))
    refused(lambda: write_store(tmp_path / "s", given, Y))
    if rows != "too few":
        for method in (fitted.predict, fitted.predict_proba, fitted.decision_function):
            refused(lambda method=method: method(given))


def test_what_stands_where_a_number_should_is_found(fitted):
    for name in ("a text among numbers", "a list of lists", "a frame"):
        refused(lambda name=name: fitted.predict(ROWS[name]), words=["in row 7, column 1 (from 0)"])
    refused(lambda: fitted.predict(ROWS["texts"]), words=["not a number in row 0"])


@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_not_quoted(fitted, labels, tmp_path):
    given = LABELS[labels]
    no_fit((*CLASSIFIERS, SEARCHES[0]), X, given)
    no_fit(CLASSIFIERS, [X, X], [Y, given], engines=[InProcessEngine()])
    refused(lambda: private_score(fitted, X, given))
    # A store keeps any texts and any numbers.
    if labels not in ("a text", "a number"):
        refused(lambda: write_store(tmp_path / "s", X, given))
    # A number beyond the bounds is clipped.
    if labels != "a number":
        no_fit((*REGRESSORS, SEARCHES[1]), X, given)
        no_fit(REGRESSORS, [X, X], [Y, given], engines=[ThreadEngine()])
        line = DPLinearRegression(50.0, target_bounds=(0, 1)).fit(X, Y)
        refused(lambda: private_score(line, X, given, metric="mae"))


@pytest.mark.parametrize("label", [WORD, NUMBER, float(NUMBER), True])
def test_the_only_label_is_not_quoted(label):
    for estimator in (
        DPLassoClassifier(),
        DPLogisticRegression(),
        PrivateSearch(DPLassoClassifier(), {}),
    ):
        refused(lambda e=estimator: e.fit(X, np.full(12, label)), words=["only one class"])


WEIGHTS = {
    "text": [WORD] * 12,
    "negative": np.full(12, -float(NUMBER)),
    "nan": np.array([*np.full(11, float(NUMBER)), np.nan]),
    "too few": np.full(11, float(NUMBER)),
    "two columns": np.full((12, 2), float(NUMBER)),
    "ragged": [[NUMBER], *([NUMBER, NUMBER] for _ in range(11))],
    "strange": Strange(),
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_are_not_quoted(weights):
    given = WEIGHTS[weights]
    some = DPLassoClassifier(), DPLogisticRegression()
    no_fit(some, X, Y, sample_weight=given)
    both = {"sample_weight": [np.ones(12), given], "engines": [InProcessEngine()]}
    no_fit(some, [X, X], [Y, Y], **both)


PEOPLE = {
    "mixed": [1, *([WORD] * 11)],
    "missing": [float("nan"), *([float(NUMBER)] * 11)],
    "too few": [WORD] * 11,
    "ragged": [[NUMBER], *([NUMBER, NUMBER] for _ in range(11))],
    "sets": [{WORD}, *([[NUMBER]] * 11)],
}


@pytest.mark.parametrize("people", PEOPLE)
def test_ids_are_not_quoted(fitted, people, tmp_path):
    given = PEOPLE[people]
    no_fit((*ESTIMATORS, SEARCHES[0]), X, Y, groups=given)
    both = {"groups": [np.arange(12), given], "engines": [InProcessEngine()]}
    no_fit(ESTIMATORS, [X, X], [Y, Y], **both)
    refused(lambda: private_score(fitted, X, Y, groups=given))
    refused(lambda: write_store(tmp_path / "s", X, Y, groups=given))


class Stranger(ClassifierMixin, BaseEstimator):
    """Somebody else's model, which quotes what it is shown."""

    def predict(self, X):
        raise KeyError(f"{WORD} in row {X[0]}")

    predict_proba = predict


def test_models_of_others_are_not_listened_to():
    model = Stranger()
    model.classes_ = np.array([0, 1])
    for metric in ("accuracy", "auc", "log_loss"):
        refused(lambda m=metric: private_score(model, X, Y, metric=m), words=["raises KeyError"])


TABLES = {
    "not a category": {"a": [WORD] * 3, "b": [1, 2, 3]},
    "not a number": {"a": ["x", "y", "x"], "b": ["1", WORD, "3"]},
    "mixed": {"a": ["x", WORD, 5], "b": [1, 2, 3]},
    "mixed numbers": {"a": ["x", "y", "x"], "b": [1, WORD, 3]},
    "sets": {"a": ["x", {WORD}, 3], "b": [1, 2, 3]},
    "lists": {"a": [[WORD], [WORD], [WORD]], "b": [1, 2, 3]},
    "a large number": {"a": ["x", "y", "x"], "b": [1, 2, 10**30 + NUMBER]},
    "missing": {"a": [WORD, None, "x"], "b": [1, 2, 3]},
    "times": {"a": ["x", "y", "x"], "b": [pandas.Timestamp("2091-03-17"), WORD, 2]},
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_not_quoted(table):
    words = {"kind": "categories", "column": "a", "categories": ["x", "y"]}
    words |= {"unknown": "error", "missing": "error"}
    parts = [words, {"kind": "number", "column": "b", "bound": 5.0}]
    frame = pandas.DataFrame(TABLES[table], dtype=object)
    encoder = PublicEncoder({"parts": parts})
    refused(lambda: encoder.fit_transform(frame))


COLUMNS = {
    "a list": [WORD, *map(str, range(40))],
    "an array": np.array([WORD, *map(str, range(40))]),
    "a series": pandas.Series([WORD, *map(str, range(40))]),
    "a text": f"has been in {WORD} since the summer of 2031",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_records_that_are_passed_as_a_parameter_are_not_quoted(fitted, column):
    """Ids, labels or notes, one argument too far to the right or left."""
    given = COLUMNS[column]
    # A text may be the path of one.
    paths = ("ledger", "prior", "public_rows") if isinstance(given, str) else ()
    places = "epsilon delta metric neighbors rows_per_person confidence random_state ledger"
    for name in places.split():
        if name not in paths:
            refused(lambda name=name: private_score(fitted, X, Y, **{name: given}))
    names = "epsilon delta max_weights row_norm classes class_weight prior public_data public_rows"
    for name in f"{names} neighbors rows_per_person random_state n_jobs".split():
        if name not in paths:
            model = DPLogisticRegression(**({"epsilon": 1.0, "classes": [0, 1]} | {name: given}))
            refused(lambda model=model: model.fit(X, Y))
    refused(lambda: DPLinearRegression(1.0, target_bounds=given).fit(X, Y))
    for name in ("grid", "epsilon", "tries", "held_out", "random_state", "metric"):
        settings = {"estimator": CLASSIFIERS[1], "grid": {}} | {name: given}
        refused(lambda settings=settings: PrivateSearch(**settings).fit(X, Y))
    refused(lambda: fitted.explain(X, given))


def test_the_secret_would_be_found():
    """What the tests look through holds what scikit-learn and Python's chains would tell."""
    with pytest.raises(AssertionError, match="Zanzibar"):
        refused(lambda: np.full((2, 2), WORD).astype(float))
    try:
        try:
            raise KeyError(WORD)
        except KeyError:
            raise ValueError("something else")  # noqa: B904
    except ValueError as error:
        with pytest.raises(AssertionError):
            quotes_nothing(told_by(error))
