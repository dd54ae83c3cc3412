"""Schemas: their columns' names and groups, their JSON, and what makes no sense."""

import json

import numpy as np
import pandas as pd
import pytest

from dplasso import DPLogisticRegression, PublicEncoder, private_quantiles
from schemas import (
    Bins,
    Categories,
    Cross,
    Date,
    Hashed,
    Levels,
    Number,
    Pairs,
    Schema,
    Text,
    read_schema,
    schema_of,
)

SEX = Categories("sex", ("F", "M"))
AGE = Bins("age", (18, 65))
WARD = Hashed(("ward", "site"), 4, words=("A", "B"))


def names(*parts):
    schema = Schema(parts)
    found = schema.names(range(schema.n_features))
    assert len(found) == schema.n_features == schema.offsets[-1]
    return found


def test_names_of_categories_and_numbers():
    assert names(SEX) == ["sex=F", "sex=M", "sex (unknown)", "sex (missing)"]
    assert names(Categories("sex", ("F",), "ignore")) == ["sex=F", "sex (missing)"]
    assert names(Categories("old", (True,), "column", "ignore")) == ["old=true", "old (unknown)"]
    assert names(AGE) == ["age<18", "18<=age<65", "age>=65", "age (missing)"]
    assert names(Number("age", 100)) == ["age", "age (missing)"]


def test_names_of_hashed_columns_are_those_of_public_words():
    found = names(WARD)
    assert found[-2:] == ["ward (missing)", "site (missing)"]
    for word in ("ward=A", "ward=B", "site=A", "site=B"):
        assert sum(word in name.split(" | ") for name in found) == 1
    assert "ward,site[15]" in found or "=" in found[15]
    texts = names(Text("note", 6, words=("heart", "heart failure")))
    assert [name for name in texts if ":" in name]
    assert texts[-1] == "note (missing)"


def test_names_of_crosses():
    found = names(SEX, AGE, Cross(("sex", "age")))[8:]
    assert len(found) == 16
    assert found[:4] == [f"sex=F & {age}" for age in names(AGE)]
    assert found[-1] == "sex (missing) & age (missing)"
    site = names(SEX, WARD, Cross(("site", "sex")))[-4:]
    assert site[0] == "site (missing) & sex=F"
    assert names(SEX, AGE, Cross(("sex", "age"), 3))[-1] == "sex*age[7]"
    three = Schema((SEX, AGE, Hashed("ward", 2), Cross(("sex", "age", "ward"))))
    assert three.parts[-1].width(three.coded) == 4 * 4 * 5


def test_few_names_of_many_columns():
    schema = Schema((Hashed("a", 30), Hashed("b", 30, words=("x",))))
    assert schema.names([0, 2**30, schema.n_features - 1]) == ["a[0]", "a (missing)", "b (missing)"]
    with pytest.raises(ValueError, match="columns must be from 0 to"):
        schema.names([schema.n_features])
    with pytest.raises(ValueError, match="too many to name all"):
        PublicEncoder(schema).get_feature_names_out()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categories("a", []), "column 'a' must be a list of at least one"),
        (lambda: Categories("a", [1, "x"]), "all strings, all numbers or all bools"),
        (lambda: Categories("a", ["x", "x"]), "column 'a' must be different"),
        (lambda: Categories("a", ["x", ""]), "an empty string, which is a missing value"),
        (lambda: Categories("a", ["x"], "drop"), "unknown must be one of column, ignore, error"),
        (lambda: Bins("a", []), "edges of column 'a' must be finite, ascending"),
        (lambda: Bins("a", [2, 1]), "edges of column 'a' must be finite, ascending"),
        (lambda: Bins("a", ["x"]), "edges of column 'a' must be finite"),
        (lambda: Number("a", 0), "bound of column 'a' must be finite and above 0"),
        (lambda: Number("a", "1"), "bound of column 'a' must be a number"),
        (lambda: Levels("x", 5, 5), "low below high"),
        (lambda: Levels("x", 0, float("inf")), "need finite"),
        (lambda: Levels("x", 0, 5, (4, 6)), "multiple of the previous one"),
        (lambda: Levels("x", 0, 5, (1, 4)), "must be numbers of bins from 2"),
        (lambda: Levels("x", 0, 5, spacing="log"), "equal, signed-log"),
        (lambda: Date("d", "hour"), "must be one of year, month, weekday: 'hour'"),
        (lambda: Date("d", "year"), "must be finite, ascending numbers, at least one"),
        (lambda: Date("d", "month", format="%Y-%m"), "format must contain year, month and day"),
        (lambda: Schema((AGE, Pairs())), "two columns"),
        (lambda: Schema((AGE, SEX, Pairs(("age", "height")))), "'height'"),
        (lambda: Pairs(("a", "a")), "2 to 32 different ones"),
        (lambda: Pairs([f"c{k}" for k in range(33)]), "2 to 32 different ones"),
        (lambda: Hashed(("a", "a"), 8), "different names of columns"),
        (lambda: Hashed("a", 31), "whole number from 1 to 30"),
        (lambda: Hashed("a", 8, words="xy"), "words must be a list of strings"),
        (lambda: Text("a", 8, (0, 1)), "ngrams must be 1 or more"),
        (lambda: Text("a", 8, "x"), "ngrams must be two whole numbers"),
        (lambda: Cross(("a",)), "must be two or three"),
        (lambda: Schema(()), "at least one part"),
        (lambda: Schema((SEX,), "sex"), "cannot be both label and feature"),
        (lambda: Schema((SEX, Cross(("sex", "age")))), "'age', .* must encode it, not 0"),
        (lambda: Schema((SEX, SEX, AGE, Cross(("sex", "age")))), "'sex', .* must encode it, not 2"),
        (
            lambda: Schema((Hashed("a", 30), Hashed("b", 30), Cross(("a", "b")))),
            "combinations; set bits",
        ),
        (
            lambda: Schema([Hashed(n, 30) for n in "abc"] + [Cross(("a", "b", "c"), 20)]),
            "cross fewer or coarser parts",
        ),
    ],
)
def test_parts_that_make_no_sense(make, message):
    with pytest.raises(ValueError, match=message):
        make()


BINS = '{"parts": [{"kind": "bins", "column": "x", "edges": [1]}]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"s\.json: not a JSON file"),
        ("[1]", r's\.json: invalid schema: a schema must be a JSON object with a list of "parts"'),
        ('{"parts": [], "x": 1}', "unknown entry 'x'"),
        ('{"parts": [], "label": 1}', "label must be the name of a column"),
        *((f'{BINS}, "missing": {missing}}}', "missing") for missing in ('"NA"', "[1]", "5")),
        ('{"parts": [{"kind": "onehot"}]}', "part 1: kind must be one of categories, bins"),
        ('{"parts": [{"kind": "number", "bond": 1}]}', "number has no 'bond'; it takes column, b"),
        ('{"parts": [{"kind": "number", "column": "a"}]}', "part 1: number needs 'bound'"),
        (
            '{"parts": [{"kind": "number", "column": 3, "bound": 1}]}',
            "part 1: column must be a name, got 3",
        ),
        ('{"parts": [{"kind": "bins", "column": "a", "edges": []}]}', "part 1: the edges of"),
    ],
)
def test_files_that_hold_no_schema(tmp_path, text, message):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_schema(path)


def test_a_draft_that_is_confirmed_says_nothing_of_the_records_any_more():
    part = {"kind": "categories", "column": "a", "categories": ["x"]}
    document = {"note": "a draft", "parts": [part | {"confirm": "are these all?"}, part]}
    draft = schema_of(document)
    assert draft.confirm == ("are these all?", "")
    assert schema_of(draft.to_json()) == draft
    confirmed = schema_of(document | {"confirmed": True})
    assert (confirmed.note, confirmed.confirm, confirmed.confirmed) == ("", ("", ""), True)
    assert confirmed.same_columns(draft)
    with pytest.raises(ValueError, match="confirmed must be true or false"):
        schema_of(document | {"confirmed": "yes"})


def test_what_is_no_statement_of_edges():
    ages = pd.DataFrame({"age": np.arange(50.0)})
    schema = private_quantiles(ages, Schema((AGE,)), {"age": (0, 100)}, epsilon=1.0)
    document = schema.to_json()
    assert schema_of(json.loads(json.dumps(document))) == schema
    for change, words in (
        ({"digest": 3}, "edges need a digest"),
        ({"by_person": 1}, "true or false as by_person"),
        ({"more": 1}, "edges must have columns, digest and statement"),
        ({"statement": document["edges"]["statement"] | {"mu": 10**400}}, "is damaged"),
        ({"statement": document["edges"]["statement"] | {"about": "score"}}, "not belong"),
    ):
        with pytest.raises(ValueError, match=words):
            schema_of(document | {"edges": document["edges"] | change})


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["age", "job=clerk", "job=driver", "dose"], ((1, 2),)),
        (["job=clerk", "sex=F", "job=x = y", "sex (missing)"], ((0, 2), (1, 3))),
        (["age<30", "30<=age<50", "age>=50", "age (missing)"], ((0, 1, 2, 3),)),
        # Of nested intervals a record has many.
        (["age>=30", "age>=50", "age>=65"], ()),
        (["job=clerk", "dose", "age squared"], ()),
        (["job_clerk", "job_driver"], ()),
    ],
)
def test_names_tell_groups(names, groups):
    """The most frequent column of a group is the reference of the others."""
    found = inferred(names, groups or [range(len(names))])
    assert found.references == tuple(names[group[0]] for group in groups)


def inferred(names, one_hot, infer="all"):
    """Return estimates from rows that have one column of each group, most often the first."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame((rng.random((2000, len(names))) < 0.5).astype(float), columns=names)
    for group in one_hot:
        first = rng.random(2000) < 0.4
        X.iloc[:, [*group]] = np.eye(len(group))[
            np.where(first, 0, rng.integers(len(group), size=2000))
        ]
    y = rng.integers(0, 2, 2000)
    # No row is longer than its number of columns.
    model = DPLogisticRegression(np.inf, classes=[0, 1], row_norm=len(names), infer=infer)
    return model.fit(X, y).inference_


def test_a_schema_tells_them_of_its_parts():
    parts = [
        {"kind": "number", "column": "dose", "bound": 2.0},
        {"kind": "categories", "column": "job", "categories": ["a", "b"]},
        {"kind": "bins", "column": "weight", "edges": [60, 80]},
        {"kind": "levels", "column": "height", "low": 0, "high": 2, "levels": [2, 4]},
        {"kind": "levels", "column": "length", "low": 0, "high": 2, "levels": [4]},
        {"kind": "date", "column": "seen", "take": "weekday", "missing": "ignore"},
        {"kind": "hashed", "columns": ["place"], "bits": 2},
        {"kind": "cross", "columns": ["job", "weight"]},
    ]
    schema = schema_of({"parts": parts})
    starts = [schema.names(group)[0] for group in schema.one_hot]
    assert starts == ["job=a", "weight<60", "length<0.5", "weekday(seen)=Mon"]
    # Unknown and missing values are categories as well, where they have a column.
    assert [len(group) for group in schema.one_hot] == [4, 4, 5, 7]
