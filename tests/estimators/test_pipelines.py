"""Pipelines whose steps learn nothing: refused otherwise, saved without pickle, loaded, named."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import dplasso
from cli.conftest import done, said
from cli.conftest import found as found_by
from dplasso import DataError, DPLogisticRegression, ModelFileError, PublicEncoder, private_score
from dplasso.estimators import record_wise as declarations
from dplasso.model import read_model, write_model
from model.files import header_of, rewrite
from secrets_in_messages import WORD, refused

RNG = np.random.default_rng(0)
WORDS = {"no": ["calm", "clear", "rested"], "yes": ["dizzy", "fever", "cough"]}
VOCABULARY = [word for group in WORDS.values() for word in group]
LABELS = RNG.choice(["no", "yes"], 800).tolist()
TEXTS = [f"seems {RNG.choice(WORDS[label])} and {RNG.choice(WORDS[label])}" for label in LABELS]
PEOPLE = pd.DataFrame({"ward": RNG.choice(["A", "B", "C"], 800), "age": RNG.integers(18, 95, 800)})
OLD = (PEOPLE["age"] > 60).to_numpy()
NUMBERS = RNG.normal(size=(800, 4))
SCHEMA = {"parts": [{"kind": "categories", "column": "ward", "categories": ["A", "B", "C"]}]}


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """Let a test declare what it likes."""
    monkeypatch.setattr(declarations, "_declared", {})


def halved(X):
    return X / 2


def dense(X):
    return np.zeros((X.shape[0], 1))


def centred(X):
    return X - X.mean(axis=0)


def from_smallest(X):
    return X - X.min(axis=0)


def to_largest(X):
    return X - X.max(axis=0)


class Halved(TransformerMixin, BaseEstimator):
    def __init__(self, by=2.0):
        self.by = by

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X / self.by


def model(**options):
    return DPLogisticRegression(**({"epsilon": 20.0, "random_state": 0} | options))


def counts(**options):
    return CountVectorizer(vocabulary=VOCABULARY, **options)


CATEGORIES = OneHotEncoder(categories=[["A", "B", "C"]], handle_unknown="ignore")
COLUMNS = make_column_transformer((CATEGORIES, ["ward"]), (Normalizer(), ["age"]))
RIGHT = {
    "hashed": (HashingVectorizer(n_features=256, alternate_sign=False), TEXTS, LABELS),
    "vocabulary": (counts(binary=True), TEXTS, LABELS),
    "no idf": (TfidfVectorizer(vocabulary=VOCABULARY, use_idf=False), TEXTS, LABELS),
    "no idf after": (make_pipeline(counts(), TfidfTransformer(use_idf=False)), TEXTS, LABELS),
    "union": (
        FeatureUnion([("w", counts()), ("h", HashingVectorizer(n_features=8))]),
        TEXTS,
        LABELS,
    ),
    "nested": (make_pipeline(counts(), Binarizer(), "passthrough", Normalizer()), TEXTS, LABELS),
    "columns": (COLUMNS, PEOPLE, OLD),
    "rest": (ColumnTransformer([("w", CATEGORIES, ["ward"])], remainder=Binarizer()), PEOPLE, OLD),
    "pandas": (
        make_column_transformer(
            (OneHotEncoder(categories=[["A", "B", "C"]], sparse_output=False), ["ward"]),
            verbose_feature_names_out=False,
        ).set_output(transform="pandas"),
        PEOPLE,
        OLD,
    ),
    "ordinal": (OrdinalEncoder(categories=[["C", "B", "A"]]), PEOPLE[["ward"]], OLD),
    "encoder": (PublicEncoder(SCHEMA), PEOPLE, OLD),
    "function": (FunctionTransformer(np.tanh), NUMBERS, OLD),
    "polynomial": (PolynomialFeatures(2, include_bias=False), NUMBERS, OLD),
    "missing": (
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        np.where(NUMBERS > 2, np.nan, NUMBERS),
        OLD,
    ),
    "words": (FeatureHasher(16, input_type="string"), [text.split() for text in TEXTS], LABELS),
}


@cache
def fitted():
    return model().fit(NUMBERS, OLD)


def weights_behind(*steps):
    """Ask for weights behind steps, which is refused where these may have learnt."""
    return dplasso.top_features(make_pipeline(*steps, fitted()))


def score_behind(function, X):
    """Score a model behind a function that is declared to treat each record separately."""
    dplasso.record_wise(function)
    pipeline = make_pipeline(FunctionTransformer(function), fitted())
    return private_score(pipeline, X, OLD[: len(X)], 1.0)


class TestRefused:
    @pytest.mark.parametrize(
        ("step", "instead"),
        [
            (StandardScaler(), "public ranges or bins"),
            (MinMaxScaler(), "public ranges or bins"),
            (KBinsDiscretizer(), "public ranges or bins"),
            (CountVectorizer(), "a public vocabulary="),
            (TfidfVectorizer(), "a public vocabulary="),
            (TfidfVectorizer(vocabulary=VOCABULARY), "use_idf=False"),
            (TfidfTransformer(), "use_idf=False"),
            (OneHotEncoder(), "set public categories="),
            (OneHotEncoder(categories=[["A"]], min_frequency=2), "leave out min_frequency"),
            (OneHotEncoder(categories=[["A"]], max_categories=2), "max_categories"),
            (OrdinalEncoder(), "set public categories="),
            (SimpleImputer(), 'strategy="constant"'),
            (SimpleImputer(strategy="constant", add_indicator=True), "no indicator"),
            (SelectKBest(), "max_weights=k"),
            (PCA(2), "max_weights=k"),
            (DictVectorizer(), "FeatureHasher"),
        ],
        ids=str,
    )
    def test_what_learns_is_refused_and_told_what_to_use(self, step, instead):
        nested = make_column_transformer((make_pipeline(Binarizer(), step), [0]))
        union = FeatureUnion([("plain", Binarizer()), ("other", step)])
        rest = ColumnTransformer([("a", Binarizer(), [0])], remainder=step)
        for one in (step, nested, union, rest):
            with pytest.raises(ValueError, match="learns from the records") as error:
                weights_behind(Normalizer(), one)
            assert instead in str(error.value)
            assert "without any guarantee" in str(error.value)

    def test_what_nobody_declared_is_refused(self):
        with pytest.raises(ValueError, match=r"'halved' \(Halved\) is not known .*record_wise"):
            weights_behind(Halved())
        dplasso.record_wise(Halved)
        weights_behind(Halved())

        class More(Halved):
            """Might learn."""

        with pytest.raises(ValueError, match="More"):
            weights_behind(More())

    @pytest.mark.parametrize(
        ("step", "told"),
        [
            (HashingVectorizer(input="filename"), "reads files named in the records"),
            (CountVectorizer(vocabulary=["a"], input="file"), "reads files named in the records"),
            (Pipeline([("a", Binarizer())], memory="cache"), "caches records on the disk"),
            # Numbers that are hashed.
            (FeatureHasher(16), 'that other records change: set input_type="string"'),
            (FeatureHasher(16, input_type="pair"), 'that other records change: set input_type="s'),
            # Of the name of a known step.
            (type("Binarizer", (Halved,), {})(), "not known to treat each record separately"),
            (
                make_column_transformer((Binarizer(), make_column_selector(dtype_include=float))),
                "chooses its columns from the records",
            ),
        ],
    )
    def test_what_depends_on_more_than_the_record_is_refused(self, step, told):
        for one in (step, FeatureUnion([("nested", step)])):
            with pytest.raises(ValueError, match=told):
                weights_behind(one)

    @pytest.mark.parametrize("wrong", [0.3, 1])
    def test_rows_that_all_records_make_sparse_or_dense_are_refused(self, wrong):
        """The last step may be so, because a model takes both alike."""
        several, one = (
            make_pipeline(Binarizer(), OneHotEncoder(categories=[names])) for names in ("AB", "A")
        )
        for encoder, threshold, right in (
            (several, 0, True),
            (several, 1, True),
            (one, 0, True),
            (one if wrong == 1 else several, wrong, False),
        ):
            columns = make_column_transformer((encoder, ["a"]), sparse_threshold=threshold)
            weights_behind(columns)
            for step in (columns, make_pipeline(columns)):
                if right:
                    weights_behind(step, Normalizer())
                    continue
                with pytest.raises(ValueError, match="by the density of all records"):
                    weights_behind(step, Normalizer())

    @pytest.mark.parametrize("wrong", [lambda X: X, halved(1), 3, DPLogisticRegression])
    def test_only_transformers_and_functions_are_declared(self, wrong):
        with pytest.raises(TypeError, match="record_wise needs the class of a transformer"):
            dplasso.record_wise(wrong)

    @pytest.mark.parametrize("seen", [centred, from_smallest, to_largest])
    def test_rows_that_depend_on_others_are_refused(self, seen):
        """Also on the largest or smallest of all, where that is in the first few rows."""
        counts = np.random.default_rng(0).integers(0, 2, (40, 4)).astype(np.float64)
        for rows in (NUMBERS, counts):
            for right in (halved, np.tanh):
                score_behind(right, rows)
            with pytest.raises(DataError, match="must depend on its own record only"):
                score_behind(seen, rows)

    def test_what_a_step_says_of_a_record_is_hidden(self, tmp_path):
        wards = PEOPLE[["ward"]].replace("C", WORD)
        known = (wards["ward"] < "C").to_numpy()
        encoder = OneHotEncoder(categories=[["A", "B"]])
        pipeline = make_pipeline(encoder, model()).fit(wards[known], OLD[known])
        dplasso.save(pipeline, tmp_path / "m.npz")
        read = dplasso.load(tmp_path / "m.npz")
        for work in (lambda: private_score(pipeline, wards, OLD, 1.0), lambda: read.predict(wards)):
            refused(work, words=["OneHotEncoder cannot take these rows"])

    def test_save_and_the_largest_weights_refuse_it_too(self, tmp_path):
        pipeline = make_pipeline(StandardScaler(), model()).fit(NUMBERS, OLD)
        for work in (
            lambda: dplasso.save(pipeline, tmp_path / "m"),
            lambda: dplasso.top_features(pipeline),
        ):
            with pytest.raises(ValueError, match="learns from the records"):
                work()
        assert list(tmp_path.iterdir()) == []


class TestFile:
    @pytest.mark.parametrize("name", RIGHT)
    def test_a_saved_pipeline_predicts_on_raw_rows(self, name, tmp_path):
        step, X, y = RIGHT[name]
        pipeline = make_pipeline(step, model()).fit(X, y)
        dplasso.save(pipeline, tmp_path / "m.npz")
        read = dplasso.load(tmp_path / "m.npz")
        assert isinstance(read, Pipeline)
        np.testing.assert_array_equal(read.predict_proba(X), pipeline.predict_proba(X))
        # A record's row is the same by itself.
        few = X[:3]
        np.testing.assert_array_equal(read.predict(few), pipeline.predict(X)[:3])
        # The same file again.
        dplasso.save(read, tmp_path / "again.npz")
        assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "m.npz").read_bytes()
        same = [top.index.tolist() for top in map(dplasso.top_features, (pipeline, read))]
        assert same[0] == same[1]

    def test_words_of_a_vocabulary_are_named(self, tmp_path):
        pipeline = make_pipeline(counts(), model()).fit(TEXTS, LABELS)
        dplasso.save(pipeline, tmp_path / "m.npz")
        for found in (pipeline, dplasso.load(tmp_path / "m.npz")):
            assert set(dplasso.top_features(found, 6).index) == set(VOCABULARY)
            assert dplasso.top_features(found)["fever"] > 1
        # The command line names them as well, and what makes rows.
        shown = found_by("show", tmp_path / "m.npz")["weights"]
        assert {one["name"] for one in shown} == set(VOCABULARY)
        page = tmp_path / "r.html"
        done("report", tmp_path / "m.npz", "--out", page)
        steps = "CountVectorizer(vocabulary=(6 public values))"
        assert f"made by {steps}" in page.read_text()
        assert steps in said("show", tmp_path / "m.npz")
        # Who has no pipeline is told as before.
        assert dplasso.top_features(pipeline[-1], 1).index[0] in range(6)

    def test_columns_go_by_name(self, tmp_path):
        pipeline = make_pipeline(COLUMNS, model()).fit(PEOPLE, OLD)
        dplasso.save(pipeline, tmp_path / "m.npz")
        read = dplasso.load(tmp_path / "m.npz")
        other = PEOPLE.assign(more=1)[["more", "age", "ward"]]
        np.testing.assert_array_equal(read.predict(other), pipeline.predict(PEOPLE))
        with pytest.raises(DataError, match="no column 'age'"):
            read.predict(PEOPLE[["ward"]])
        # The command line reads tables by the schema of an encoder.
        pipeline = make_pipeline(PublicEncoder(SCHEMA), model()).fit(PEOPLE, OLD)
        dplasso.save(pipeline, tmp_path / "m.npz")
        PEOPLE.to_csv(tmp_path / "t.csv", index=False)
        predicted = said("predict", tmp_path / "m.npz", tmp_path / "t.csv").split()
        assert predicted == [str(label) for label in pipeline.predict(PEOPLE)]
        pipeline = make_pipeline(PolynomialFeatures(2), model()).fit(NUMBERS, OLD)
        dplasso.save(pipeline, tmp_path / "m.npz")
        with pytest.raises(DataError, match="X has 3 columns, but the pipeline needs 4"):
            dplasso.load(tmp_path / "m.npz").predict(NUMBERS[:, :3])

    def test_own_functions_and_types_go_by_the_name_they_were_declared_under(
        self, tmp_path, monkeypatch
    ):
        pipeline = make_pipeline(FunctionTransformer(halved), Halved(by=4.0), model())
        pipeline.fit(NUMBERS, OLD)
        dplasso.record_wise(Halved)
        with pytest.raises(ValueError, match="a model file cannot store halved"):
            dplasso.save(pipeline, tmp_path / "m.npz")
        assert dplasso.record_wise(halved) is halved
        dplasso.save(pipeline, tmp_path / "m.npz")
        read = dplasso.load(tmp_path / "m.npz")
        np.testing.assert_array_equal(read.predict(NUMBERS), pipeline.predict(NUMBERS))
        told = read_model(tmp_path / "m.npz").row_steps.described()
        assert told[1] == "Halved(by=4.0) (declared to treat each record separately)"
        # Another process, which has not declared them, follows no name.
        monkeypatch.setattr(declarations, "_declared", {})
        with pytest.raises(ModelFileError, match="which is not declared"):
            dplasso.load(tmp_path / "m.npz")

    @pytest.mark.parametrize(
        "step",
        [
            {"type": "os:system"},
            {"type": "builtins:eval"},
            {"type": "sklearn.preprocessing.StandardScaler"},
            {"type": "numpy:log1p"},
            {"type": "numpy:load"},
            {"type": "test:halved"},
            {"type": "dplasso.estimators.regressors.DPLasso"},
            {"params": {"func": {"function": "os:system"}}},
            {"params": {"func": {"function": "numpy:load"}}},
            {"params": {"func": {"pickle": ""}}},
            *({"params": {"func": {"function": held}}} for held in (5, ["numpy:tanh"], None)),
            {"params": {"kw_args": {"a": 1, "b": 2}}},
            {"params": {"nothing": 1}},
            {"params": {"func": {"array": [[1], "|V8"]}}},
            {"output": "os"},
            {"type": "sklearn.feature_extraction.text.CountVectorizer"},
            {"type": "sklearn.feature_extraction.text.HashingVectorizer"}
            | {"params": {"input": "filename"}},
        ],
        ids=json.dumps,
    )
    def test_a_strangers_file_runs_nothing(self, step, tmp_path):
        dplasso.record_wise(halved)
        declarations._declared["test:halved"] = halved
        pipeline = make_pipeline(FunctionTransformer(np.tanh), model()).fit(NUMBERS, OLD)
        dplasso.save(pipeline, tmp_path / "m.npz")
        changed = read_model(tmp_path / "m.npz")
        changed.row_steps.steps[0].update(step)
        write_model(changed, tmp_path / "m.npz")
        with pytest.raises(ModelFileError):
            dplasso.load(tmp_path / "m.npz")

    def test_damaged_steps_are_refused(self, tmp_path):
        pipeline = make_pipeline(counts(), model()).fit(TEXTS, LABELS)
        dplasso.save(pipeline, tmp_path / "m.npz")
        right = header_of(tmp_path / "m.npz")["pipeline"]
        for change in (
            {"steps": 3},
            {"steps": [3]},
            {"steps": [{"name": "a"}]},
            {"steps": [{"name": "a", "type": 3, "params": {}}]},
            {"inputs": [3]},
            {"inputs": 0},
            {"columns": ["a"]},
            {"columns": [3] * 6},
            {"more": 1},
        ):
            rewrite(
                tmp_path / "m.npz", lambda header, new=right | change: header.update(pipeline=new)
            )
            with pytest.raises(ModelFileError, match="pipeline"):
                read_model(tmp_path / "m.npz")

    def test_others_are_no_models_of_ours(self, tmp_path):
        other = make_pipeline(Binarizer(), LogisticRegression()).fit(NUMBERS, OLD)
        for wrong in (other, other[-1]):
            with pytest.raises(TypeError, match="LogisticRegression is not a model of dplasso"):
                dplasso.save(wrong, tmp_path / "m.npz")

    def test_a_pipeline_of_a_model_alone_is_its_file(self, tmp_path):
        alone = make_pipeline(model()).fit(NUMBERS, OLD)
        dplasso.save(alone, tmp_path / "a.npz")
        alone[-1].save(tmp_path / "b.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_an_unsorted_row_changes_no_other(kind, monkeypatch):
    """scipy adds up duplicates where it puts parts side by side, in an order that others change."""
    rng, y = np.random.default_rng(0), np.arange(30) % 2
    columns, entries = np.sort(rng.integers(0, 9, (30, 50)), axis=1), rng.normal(size=(30, 50))
    steps = FeatureUnion([("one", Halved()), ("dense", FunctionTransformer(dense))])
    declarations.record_wise(Halved)
    declarations.record_wise(dense)
    pipeline = make_pipeline(steps, model().fit(np.eye(30, 10), y))
    found = []
    monkeypatch.setattr(DPLogisticRegression, "predict", lambda _, X: found.append(X) or y)
    for last in (columns[-1], columns[-1][::-1]):
        rows = np.vstack([columns[:-1], last])
        X = sp.csr_array((entries.ravel(), rows.ravel(), np.arange(0, 1501, 50)), shape=(30, 9))
        private_score(pipeline, kind(X), y, 1.0, metric="accuracy")
    one, other = (X.toarray()[:-1] for X in found)
    assert one.tobytes() == other.tobytes()
    expected = np.zeros((30, 9))
    np.add.at(expected, (np.repeat(np.arange(30), 50), columns.ravel()), entries.ravel())
    assert one[:, :9].tobytes() == (expected[:-1] / 2.0).tobytes()


@pytest.mark.parametrize("steps", [(0, Normalizer()), (1, Normalizer()), (0.3,)], ids=str)
def test_the_density_of_all_records_changes_no_other(steps, tmp_path):
    """With the last record, fewer than three of ten entries are not 0."""
    threshold, *others = steps
    wards = [f"w{k}" for k in range(29)]
    numbers = RNG.uniform(0.1, 9.0, (200, 11))
    people = pd.DataFrame(numbers, columns=list("abcdefghijk")).assign(ward="w3")
    more = pd.concat([people, people[:1].assign(ward="other")], ignore_index=True)
    columns = make_column_transformer(
        (OneHotEncoder(categories=[wards], handle_unknown="ignore"), ["ward"]),
        remainder="passthrough",
        sparse_threshold=threshold,
    )
    pipeline = make_pipeline(columns, *others, model()).fit(people, numbers[:, 0] > 5)
    dplasso.save(pipeline, tmp_path / "m.npz")
    read = dplasso.load(tmp_path / "m.npz")
    assert sp.issparse(read[0].transform(people)) == (threshold == 1)
    assert sp.issparse(read[0].transform(more)) == (threshold > 0)
    found = [read.predict_proba(rows)[:200] for rows in (people, more)]
    assert found[0].tobytes() == found[1].tobytes()
