"""No other row changes a prediction that a score counts, not by a bit."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.feature_extraction import FeatureHasher
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dplasso import (
    DataError,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PublicEncoder,
    private_score,
)
from dplasso.estimators.load import FittedAnew
from dplasso.tuning import estimates
from dplasso.tuning.isolation import isolated
from neighbours import in_parts
from schemas import Hashed, Schema

RNG = np.random.default_rng(0)
X = RNG.normal(size=(61, 37)) * (RNG.random((61, 37)) < 0.6)
SCORES = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=61)
TWO, THREE = (SCORES > 0).astype(int), np.digitize(SCORES, [-0.3, 0.3])
# Prefixes, gaps and single rows; what BLAS does depends on how many rows there are.
CHOICES = [np.arange(n) for n in (*range(1, 18), 31, 32, 33, 60)]
CHOICES += [np.arange(k, 61, 3) for k in range(3)] + [np.array([k]) for k in (0, 7, 60)]
SOME = CHOICES[:3] + CHOICES[-5:]


def fitted(model, y, rows=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, y)


def methods(model):
    return ["predict", *(["predict_proba"] if hasattr(model, "predict_proba") else [])]


def check_rows(model, rows=X, choices=CHOICES):
    """Whatever other rows there are, and however many, a row's prediction keeps every bit."""
    alone = isolated(model)
    for method in methods(model):
        whole = getattr(alone, method)(rows)
        for chosen in choices:
            some = getattr(alone, method)(rows[chosen])
            np.testing.assert_array_equal(some, whole[chosen])
            assert some.dtype == whole.dtype
        own = getattr(model, method)(rows)
        if whole.dtype.kind == "f":
            np.testing.assert_allclose(whole, own, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(whole, own)


OTHERS = [
    LogisticRegression(),
    LinearDiscriminantAnalysis(),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(7, n_jobs=2, random_state=0),
    DummyClassifier(),
    MLPClassifier((8,), max_iter=10, random_state=0),
    KNeighborsClassifier(5),
    SVC(),
    SVC(kernel="linear"),
    OneVsRestClassifier(LogisticRegression()),
    make_pipeline(PCA(5), LogisticRegression()),
]


@pytest.mark.parametrize("model", OTHERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
def test_other_models_of_scikit_learn(model, target):
    check_rows(fitted(model, target), choices=SOME)


def test_numbers_of_forests_and_of_sparse_rows():
    check_rows(fitted(ExtraTreesRegressor(7, n_jobs=2, random_state=0), SCORES))
    check_rows(fitted(SVC(), TWO, sp.csr_array(X)), sp.csr_array(X), SOME)


OURS = [
    (DPLogisticRegression(8.0, random_state=0), TWO),
    (DPLogisticRegression(8.0, random_state=0), THREE),
    (DPLassoClassifier(8.0, random_state=0), THREE),
    (DPLinearRegression(8.0, target_bounds=(-3, 3), random_state=0), SCORES),
    (DPLogisticRegression(8.0, random_state=0), np.column_stack([TWO, THREE > 1])),
]


@pytest.mark.parametrize("number", range(len(OURS)))
def test_models_of_this_package(number):
    model, target = OURS[number]
    model = fitted(model, target)
    for rows in (X, sp.csr_array(X), sp.csc_array(X)):
        check_rows(model, rows)


class Numerous(ClassifierMixin, BaseEstimator):
    """A model of another package that rounds otherwise for another number of rows, as BLAS may."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        p = np.full(len(X), 0.5 + 2.0**-40 * (len(X) > 1))
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def statistics(monkeypatch, *given, **changes):
    """Return the sums that a score adds noise to."""
    kept = []
    monkeypatch.setattr(
        estimates, "release", lambda sums, *_: kept.append(sums.copy()) or sums.astype(float)
    )
    private_score(*given, 1.0, **changes)
    return kept[0]


def table(rows):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"word": np.where(rows[:, 0] > 0, "a", "b"), "x": rows[:, 1]})


def whole(rows):
    return rows


def turned(rows):
    """Transform a row otherwise if many stand before it."""
    return np.where(np.arange(len(rows))[:, np.newaxis] < 20, rows, -rows)


PIPELINES = {
    "scaled": (make_pipeline(StandardScaler(), LogisticRegression()), whole),
    "projected": (make_pipeline(PCA(9), LogisticRegression()), whole),
    "projected, a forest": (make_pipeline(TruncatedSVD(9), DecisionTreeClassifier()), whole),
    "a function": (make_pipeline(FunctionTransformer(turned), DecisionTreeClassifier()), whole),
    "a table": (
        make_pipeline(
            ColumnTransformer([("x", PCA(1), ["x"])], remainder="drop"), LogisticRegression()
        ),
        table,
    ),
    "a nearest neighbour": (KNeighborsClassifier(3), whole),
    "a guess": (DummyClassifier(strategy="stratified", random_state=0), whole),
    "another package's": (Numerous(), whole),
}


@pytest.mark.parametrize("metric", ["auc", "log_loss", "f1"])
@pytest.mark.parametrize("name", PIPELINES)
def test_rows_add_up(monkeypatch, name, metric):
    """The statistic of all rows is the sum of those of single rows, in integers."""
    model, records = PIPELINES[name]
    if name != "another package's":
        model = fitted(model, TWO, records(X))
    rows, given = X[:25], {"metric": metric}
    total = statistics(monkeypatch, model, records(rows), TWO[:25], **given)
    each = [
        statistics(monkeypatch, model, records(rows[[i]]), TWO[[i]], **given) for i in range(25)
    ]
    np.testing.assert_array_equal(total, np.sum(each, axis=0))


def test_hashed_numbers_add_up_as_those_of_a_single_record(monkeypatch):
    """If a record's columns do not ascend, scipy sorts all records, and equal columns move."""
    hasher = FeatureHasher(2, alternate_sign=False)
    keys = sorted(map(str, range(60)), key=lambda key: hasher.transform([{key: 1.0}]).indices[0])
    person, falling = dict(zip(keys, RNG.random(60), strict=True)), {keys[-1]: 1.0, keys[0]: 1.0}
    sums = [hasher.transform(some).toarray()[0] for some in ([person], [person, falling])]
    column = int(np.argmax(sums[0] != sums[1]))
    assert sums[0][column] != sums[1][column]
    threshold = min(some[column] for some in sums)
    model = make_pipeline(hasher, Binarizer(threshold=threshold), DecisionTreeClassifier())
    model.fit([{keys[-column]: 1e3}, {keys[-column]: 1e-3}], [0, 1])
    # The first eight are transformed again, one by one.
    people, y = [{"0": 0.5}] * 8 + [person] * 9, np.arange(18) % 2
    total, more, own = (
        statistics(monkeypatch, model, *some, metric="log_loss")
        for some in ((people, y[:17]), ([*people, falling], y), ([falling], y[17:]))
    )
    np.testing.assert_array_equal(total + own, more)


SINGLE = {
    "a linear model": LogisticRegression(),
    "a network": MLPClassifier((8,), max_iter=10, random_state=0),
    "scaled, a network": make_pipeline(MaxAbsScaler(), MLPClassifier((4,), max_iter=5)),
    "scaled, a tree": make_pipeline(MaxAbsScaler(), DecisionTreeClassifier(random_state=0)),
    "ours": DPLogisticRegression(8.0, classes=(0, 1), random_state=0),
    "scaled to length 1, ours": make_pipeline(
        Normalizer(), DPLogisticRegression(8.0, classes=(0, 1), random_state=0)
    ),
}


def in_text(rows):
    return rows.astype(str)


def counts():
    """Return a table of whole numbers, and one of the same but for a missing value."""
    pandas = pytest.importorskip("pandas")
    numbers = np.random.default_rng(0).integers(1, 120, (200, 2)).astype(np.int16)
    frame = pandas.DataFrame(numbers, columns=["a", "b"])
    missing = frame.astype({"a": np.float64})
    missing.loc[199, "a"] = np.nan
    return frame, missing, np.arange(200) % 2


@pytest.mark.parametrize("last", [SINGLE["a linear model"], SINGLE["ours"]], ids=["other", "ours"])
def test_a_missing_value_changes_no_other_row(monkeypatch, last):
    """A column of whole numbers then holds floats, of which numpy takes other logarithms."""
    frame, missing, y = counts()
    filled = SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True)
    model = make_pipeline(FunctionTransformer(np.log1p), filled, last)
    model = fitted(model, y, frame.astype(np.float64))
    total, own = (
        [statistics(monkeypatch, model, some, labels, metric="log_loss") for some in tables]
        for tables, labels in (
            ((frame, missing), y),
            ((frame.iloc[[199]], missing.iloc[[199]]), y[[199]]),
        )
    )
    np.testing.assert_array_equal(total[0] - own[0], total[1] - own[1])


def as_category(values):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": pandas.Series(values).astype("category")})


def as_arrow(values):
    return pytest.importorskip("pyarrow").table({"a": values})


def in_lists(values):
    return [[value] for value in values]


def in_column(values):
    return np.array(values)[:, np.newaxis]


@pytest.mark.parametrize(
    ("made", "categories", "others", "own"),
    [
        (in_lists, [0.5, 1.5, 3.0], [3, 0, 1], 0.5),
        (as_category, [0.5, 1.5, 3.0], [3, 0, 1], 0.5),
        (as_arrow, [0.5, 1.5, 3.0], [3, 0, 1], 0.5),
        (in_column, ["abc", "q", "xyz"], [b"q", b"ab", b"xy"], b"abc"),
        (in_lists, ["abc", "q", "xyz"], [b"q", b"ab", b"xy"], b"abc"),
    ],
    ids=["lists", "categories", "arrow", "bytes", "lists of bytes"],
)
def test_the_type_of_a_record_changes_no_other_row(monkeypatch, made, categories, others, own):
    """An encoder converts its categories to the type of a column before it compares them."""
    encoder = FittedAnew(OneHotEncoder(categories=[categories], handle_unknown="ignore"))
    model = make_pipeline(encoder, DPLogisticRegression(8.0, classes=(0, 1), random_state=0))
    fitted(model, np.arange(30) % 2, np.array(categories * 10, object)[:, np.newaxis])
    # The first eight are transformed again, one by one.
    values, y = [others[0]] * 8 + others[1:] * 16, np.arange(41) % 2
    total, more, alone = (
        statistics(monkeypatch, model, made(some), labels, metric="log_loss")
        for some, labels in ((values, y[:40]), ([*values, own], y), ([own], y[40:]))
    )
    np.testing.assert_array_equal(total + alone, more)


def test_an_encoder_reads_whole_numbers_that_are_no_floats():
    pandas = pytest.importorskip("pandas")
    ids = pandas.DataFrame({"id": 2**53 + np.arange(40)})
    encoder = PublicEncoder(Schema((Hashed(("id",), 4),)))
    model = make_pipeline(encoder, DPLogisticRegression(8.0, classes=(0, 1)))
    assert private_score(fitted(model, TWO[:40], ids), ids, TWO[:40]).metric == "auc"


def test_a_step_that_depends_on_the_type_of_a_column_is_refused():
    frame, _, y = counts()
    words = [[str(number) for number in range(120)]] * 2
    encoder = OneHotEncoder(categories=words, handle_unknown="ignore")
    model = make_pipeline(FunctionTransformer(in_text), encoder, LogisticRegression())
    with pytest.raises(DataError, match="numbers of one type differently than of another"):
        private_score(fitted(model, y, frame), frame, y)


class Answers:
    """A model of another package that answers the row of a number, in the type of this answer."""

    def __init__(self, answers, classes_=None):
        self.answers, self.classes_ = answers, classes_

    def predict(self, X):
        return np.array([self.answers[int(number)] for number in X[:, 0]])

    predict_proba = predict


LARGE, UNIT = (2**53, 2**53 + 1), {"target_bounds": (0.0, 1.0)}
CHANCES = [np.array([1.0 - p, p], np.float32) for p in (0.1, 0.7)]


@pytest.mark.parametrize(
    ("metric", "answers", "y", "options"),
    [
        ("accuracy", [0, 1, "unknown"], (0, 1), {}),
        ("f1", [0, 1, "unknown"], (0, 1), {}),
        ("accuracy", [*LARGE, np.nan], LARGE[::-1], {}),
        ("log_loss", [*CHANCES, ["0.5", "0.5"]], (0, 1), {}),
        ("mae", [np.float32(0.1), np.float32(0.7), "0.5"], (0.1, 0.7), UNIT),
    ],
    ids=["words", "words counted", "large", "probabilities", "numbers"],
)
def test_an_answer_of_another_type_changes_no_other(monkeypatch, metric, answers, y, options):
    """Together, numbers become texts, and whole numbers beside NaN lose their last digits."""
    model = Answers(answers, None if options else np.array(y))
    numbers, y = np.arange(3.0)[:, np.newaxis], np.array([*y, y[0]])
    total, more, own = (
        statistics(monkeypatch, model, numbers[some], y[some], metric=metric, **options)
        for some in (slice(2), slice(3), slice(2, 3))
    )
    np.testing.assert_array_equal(total + own, more)


class Pairs(Numerous):
    def predict_proba(self, X):
        return np.zeros((2, 2))


def test_a_model_that_does_not_predict_one_row_is_refused():
    with pytest.raises(DataError, match="the model returned 2 predictions for 1 row"):
        private_score(Pairs(), X, TWO)


class Quoting(ClassifierMixin, BaseEstimator):
    """A model that warns of large entries, and quotes them."""

    classes_ = np.array([0, 1])

    def predict(self, rows):
        if np.max(rows) > 1e6:
            warnings.warn(f"the row holds {np.max(rows)}", UserWarning, stacklevel=2)
        return (rows[:, 0] > 0).astype(int)


HUGE = np.vstack([X, np.full(X.shape[1], 1e308)])
WARNING = {
    "a product that overflows": fitted(LogisticRegression(), TWO),
    "a warning of its own": Quoting(),
    "a forest": fitted(RandomForestClassifier(3, random_state=0), TWO),
    "a step": fitted(make_pipeline(FunctionTransformer(np.square), LogisticRegression()), TWO),
    "a step before ours": fitted(
        make_pipeline(
            FunctionTransformer(np.square), FunctionTransformer(np.tanh), DPLogisticRegression()
        ),
        TWO,
    ),
}


@pytest.mark.parametrize("name", WARNING)
def test_no_row_makes_a_model_or_a_step_warn(name):
    """A warning would say that somebody's numbers are huge, and end a run with `-W error`."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # A model may refuse a row.
        with suppress(DataError):
            private_score(WARNING[name], HUGE, np.append(TWO, 1), 1.0, metric="accuracy")
    assert told == []


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("name", SINGLE)
def test_a_row_that_repeats_a_column_changes_no_other(monkeypatch, name, form):
    """Its matrix is then one of double precision; the others' numbers have single precision."""
    rows = sp.csr_array(X.astype(np.float32))
    model = fitted(SINGLE[name], TWO, rows)
    found = []
    for columns, entries in (([0], [1.0]), ([0, 0], [0.5, 0.5])):
        parts = (
            np.append(rows.data, np.array(entries, np.float32)),
            np.append(rows.indices, np.array(columns, np.int32)),
            np.append(rows.indptr, rows.nnz + len(columns)).astype(np.int32),
        )
        records = sp.csr_array(parts, shape=(62, 37))
        # Conversion by scipy would add up what repeats.
        records.has_canonical_format = True
        given = form(records), np.append(TWO, 1)
        found.append(statistics(monkeypatch, model, *given, metric="log_loss"))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", SINGLE)
def test_a_row_that_does_not_ascend_changes_no_other(monkeypatch, name):
    """scipy sorts all rows if it converts a matrix that has one, and adds up in another order."""
    rows = sp.csr_array(X.astype(np.float32))
    model, found = fitted(SINGLE[name], TWO, rows), []
    columns, entries = in_parts(rows.indices, rows.data)
    for last in ([0, 1], [1, 0]):
        parts = (
            np.append(entries, np.ones(2, np.float32)),
            np.append(columns, np.array(last, np.int32)),
            np.append(3 * rows.indptr, entries.size + 2).astype(np.int32),
        )
        given = sp.csr_array(parts, shape=(62, 37)), np.append(TWO, 1)
        found.append(statistics(monkeypatch, model, *given, metric="log_loss"))
    np.testing.assert_array_equal(*found)
