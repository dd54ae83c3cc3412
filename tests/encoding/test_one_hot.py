"""Which columns are the categories of one variable."""

import pytest

from dplasso.datasets import FEATURE_NAMES
from dplasso.encoding.origin import is_named, named_groups
from dplasso.encoding.schema import schema_from_json


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
    assert named_groups(names) == groups


def test_the_name_of_a_variable_stands_for_its_bins_and_its_missing_values():
    ages = ["age", "age=3", "age<60", "60<=age<70", "age>=70", "age (missing)", "age (unknown)"]
    others = ["ages=3", "job=age", "age squared", "(intercept)"]
    assert [name for name in ages + others if is_named(name, ("age",))] == ages
    assert is_named("60<=age<70", ("60<=age<70",))


def test_the_columns_of_adult_are_those_of_its_variables():
    names = [str(name) for name in FEATURE_NAMES]
    groups = named_groups(names)
    left = {*range(len(names))}.difference(*groups)
    assert {names[place].split(" in fifth")[0] for place in left} == {"fnlwgt"}
    assert sum(map(len, groups)) == len(names) - 5
    assert len(groups) == 13


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
    schema = schema_from_json({"parts": parts})
    starts = [schema.names(group)[0] for group in schema.one_hot]
    assert starts == ["job=a", "weight<60", "length<0.5", "weekday(seen)=Mon"]
    # Unknown and missing values are categories as well, where they have a column.
    assert [len(group) for group in schema.one_hot] == [4, 4, 5, 7]
