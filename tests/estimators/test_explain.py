"""The parts that add up to the margin of a row, and weights as odds of a typical row."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.conftest import done, found, said
from dplasso import (
    DataError,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PublicEncoder,
    write_store,
)
from schemas import Categories, Cross, Levels, Schema

SCHEMA = Schema(
    (Levels("age", 0, 100), Categories("job", ("clerk", "cook")), Cross(("age", "job"))), "y"
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(0, 100, 3_000), "job": rng.choice(["clerk", "cook"], 3_000)}
    )
    frame["y"] = np.where(frame["age"] + 30 * (frame["job"] == "cook") > 65, "yes", "no")
    return frame


def fitted(kind, table, y=None, **options):
    X = PublicEncoder(SCHEMA).transform(table)
    return kind(5.0, random_state=0, **options).fit(X, table["y"] if y is None else y)


TWO = {"classes": ["no", "yes"]}
CASES = [
    (DPLogisticRegression, TWO, None),
    (DPLogisticRegression, TWO | {"max_weights": 6}, None),
    (DPLogisticRegression, TWO | {"prior": np.full(SCHEMA.n_features, 0.1)}, None),
    (DPLassoClassifier, TWO, None),
    (DPLogisticRegression, {"classes": [0, 1, 2]}, "three"),
    (DPLinearRegression, {"target_bounds": (0, 100)}, "age"),
]


@pytest.mark.parametrize(("kind", "options", "target"), CASES)
def test_the_parts_add_up_to_the_margin(table, kind, options, target):
    y = {"three": table["age"] // 34, "age": table["age"], None: None}[target]
    model = fitted(kind, table, y, **options)
    rows = table.head(20)
    margins = model.predict(rows) if target == "age" else model.decision_function(rows)
    for place, one in enumerate(model.explain(rows)):
        total = one.intercept + sum(part.effect for part in one.parts)
        assert one.margin == pytest.approx(total, abs=1e-9)
        expected = margins[place].max() if target == "three" else margins[place]
        assert one.margin == pytest.approx(expected, abs=1e-9)
        assert one.label == {"three": model.predict(rows)[place], "age": None, None: "yes"}[target]
        sizes = [abs(part.effect) for part in one.parts]
        assert sizes == sorted(sizes, reverse=True)
        # Levels and missing values of a column are one part.
        assert {part.column for part in one.parts} <= {"age", "job", "age, job"}


def test_words_and_odds(table):
    model = fitted(DPLogisticRegression, table, classes=["no", "yes"])
    row = pd.DataFrame({"age": [90], "job": ["cook"]})
    (one,) = model.explain(row)
    words = {part.column: part.words for part in one.parts}
    assert words["job"] == "job=cook"
    low, high = words["age"].split("<=age<")
    assert float(low) <= 90 < float(high)
    assert words["age, job"] == "age>=75 & job=cook"
    age = next(part for part in one.parts if part.column == "age")
    # By that the odds change where the part is added last; both margins are above 0.
    assert one.margin - age.effect > 0.0
    odds, without = 0.5 * (1.0 + np.exp([one.margin, one.margin - age.effect]))
    assert age.odds == pytest.approx(odds / without)
    assert model.predict_proba(row)[0] == pytest.approx([1 / (1 + odds), odds / (1 + odds)])
    assert age.odds > 1.0
    assert str(one).startswith(f"margin of yes {one.margin:+.2f} = ")
    assert "(odds x " in str(one)
    json.dumps(one.to_dict())


def test_matrices_without_a_schema_are_explained_column_by_column(tmp_path):
    X = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = DPLogisticRegression(1.0, classes=[0, 1]).fit(X, [0, 1, 0, 1])
    explained = model.explain(X)
    assert [[part.words for part in one.parts] for one in explained] == [["a"], ["b"], ["c"], ["d"]]
    bare = DPLogisticRegression(1.0, classes=[0, 1]).fit(X.to_numpy(), [0, 1, 0, 1])
    assert bare.explain(X.to_numpy()[:1])[0].parts[0].words == "column 0"
    store = write_store(tmp_path / "s", X.to_numpy(), [0, 1, 0, 1])
    with pytest.raises(DataError, match="rows of a store cannot be explained"):
        model.explain(store)


def test_the_label_is_one_of_the_model(table):
    three = fitted(DPLogisticRegression, table, table["age"] // 34, classes=[0, 1, 2])
    margins = three.decision_function(table.head(3))
    assert [one.margin for one in three.explain(table.head(3), 2)] == pytest.approx(margins[:, 2])
    with pytest.raises(ValueError, match="label must be one of \\[0, 1, 2\\], got 7"):
        three.explain(table.head(3), 7)
    two = fitted(DPLogisticRegression, table, classes=["no", "yes"])
    with pytest.raises(ValueError, match="label must be one of \\['yes'\\], got 'no'"):
        two.explain(table.head(3), "no")
    labels = np.stack([table["age"] > 50, table["age"] > 20], axis=1).astype(int)
    many = fitted(DPLogisticRegression, table, labels, classes=["old", "grown"])
    with pytest.raises(ValueError, match="each has its own margin"):
        many.explain(table.head(3))
    margins = many.decision_function(table.head(3))
    assert [one.margin for one in many.explain(table.head(3), "grown")] == pytest.approx(
        margins[:, 1]
    )


def test_the_command_line_says_it_for_rows_of_a_file(table, tmp_path):
    model = fitted(DPLogisticRegression, table, classes=["no", "yes"])
    model.save(tmp_path / "m.npz")
    table.head(30).to_csv(tmp_path / "t.csv", index=False)
    told = said("explain", tmp_path / "m.npz", tmp_path / "t.csv", "--rows", "2", "--top", "2")
    first = model.explain(table.head(1))[0]
    assert f"row 1: margin of yes {first.margin:+.2f} = " in told
    assert "row 3" not in told
    document = found("explain", tmp_path / "m.npz", tmp_path / "t.csv")
    explained = model.explain(table.head(10))
    assert document["not_for_release"] == ["rows"]
    assert document["rows"] == [
        one.to_dict() | {"parts": [*map(vars, one.parts)]} for one in explained
    ]
    shown = done("show", tmp_path / "m.npz").stdout
    assert "Positive weights speak for yes." in " ".join(shown.split())
    assert "odds x" in shown
    top = found("show", tmp_path / "m.npz", "--top", "3")["weights"]
    assert all((one["odds"] > 1) == (one["weight"] > 0) for one in top)
