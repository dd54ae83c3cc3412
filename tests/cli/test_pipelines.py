"""Model files that hold a pipeline: predict, evaluate, show and report from raw rows."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, OneHotEncoder

import dplasso
from cli.conftest import done, found, refused, run_command, said
from dplasso import DPLogisticRegression, PublicEncoder
from dplasso.model import write_model

RNG = np.random.default_rng(0)
WORDS = ["calm", "clear", "dizzy", "fever"]
NUMBER = RNG.integers(0, 4, (600, 2))
TEXTS = [" ".join(WORDS[k] for k in row) for row in NUMBER]
ILL = np.where(NUMBER.sum(axis=1) > 3, "yes", "no")
WARDS = pd.DataFrame({"ward": RNG.choice(["A", "B"], 600)})


def fitted(step, X, path, y=ILL):
    pipeline = make_pipeline(step, DPLogisticRegression(20.0)).fit(X, y)
    dplasso.save(pipeline, path)
    return pipeline


@pytest.fixture
def of_texts(tmp_path):
    return fitted(CountVectorizer(vocabulary=WORDS), TEXTS, tmp_path / "m.npz")


def write_csv(path, **columns):
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))
    return path


def write_lines(path, **columns):
    rows = zip(*columns.values(), strict=True)
    lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("name", ["text", "note"])
@pytest.mark.parametrize(("suffix", "write"), [("csv", write_csv), ("jsonl", write_lines)])
def test_texts_of_a_table(of_texts, tmp_path, name, suffix, write):
    labels = {"label": ILL.tolist()}
    rows = write(tmp_path / f"new.{suffix}", **{name: TEXTS}, **labels)
    expected = of_texts.predict(TEXTS).tolist()
    assert done("predict", tmp_path / "m.npz", rows).stdout.split() == expected
    bare = write(tmp_path / f"bare.{suffix}", **{name: TEXTS})
    assert done("predict", tmp_path / "m.npz", bare).stdout.split() == expected
    scores = found("evaluate", tmp_path / "m.npz", rows)
    assert scores["accuracy"] == np.mean(np.array(expected) == ILL)
    private = found("evaluate", tmp_path / "m.npz", rows, "--epsilon", 20)
    assert private["value"] == pytest.approx(scores["accuracy"], abs=0.02)


def test_words_are_named_and_the_page_says_what_makes_rows(of_texts, tmp_path):
    shown = found("show", tmp_path / "m.npz")
    assert {one["name"] for one in shown["weights"]} == set(WORDS)
    done("report", tmp_path / "m.npz", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "made by CountVectorizer(vocabulary=[" in page
    assert "fever" in page
    assert "CountVectorizer" in said("show", tmp_path / "m.npz")


def test_a_table_with_types(tmp_path):
    step = OneHotEncoder(categories=[["A", "B"]])
    pipeline = fitted(step, WARDS, tmp_path / "m.npz")
    WARDS.assign(label=ILL, more=1).to_parquet(tmp_path / "t.parquet")
    lines = write_lines(tmp_path / "t.jsonl", ward=WARDS["ward"].tolist())
    expected = pipeline.predict(WARDS).tolist()
    for rows in (tmp_path / "t.parquet", lines):
        assert done("predict", tmp_path / "m.npz", rows).stdout.split() == expected
    untyped = write_csv(tmp_path / "t.csv", ward=WARDS["ward"].tolist())
    refused(run_command("predict", tmp_path / "m.npz", untyped), "which columns are numbers")


def test_an_encoders_schema_reads_tables_as_without_a_pipeline(tmp_path):
    schema = {"parts": [{"kind": "categories", "column": "ward", "categories": ["A", "B"]}]}
    pipeline = fitted(PublicEncoder(schema), WARDS, tmp_path / "m.npz")
    rows = write_csv(tmp_path / "t.csv", ward=WARDS["ward"].tolist())
    predicted = done("predict", tmp_path / "m.npz", rows).stdout.split()
    assert predicted == pipeline.predict(WARDS).tolist()


def test_numbered_columns(tmp_path, train):
    X = RNG.normal(size=(300, 30))
    pipeline = fitted(Binarizer(), X, tmp_path / "m.npz", X[:, 0] > 0)
    (tmp_path / "new.svm").write_text("0 1:0.5 3:-2\n0 1:-0.5 3:2\n")
    rows = np.zeros((2, 30))
    rows[:, 0], rows[:, 2] = [0.5, -0.5], [-2, 2]
    expected = [str(one) for one in pipeline.predict(rows)]
    assert done("predict", tmp_path / "m.npz", tmp_path / "new.svm").stdout.split() == expected


def test_what_the_model_cannot_take_is_said(of_texts, tmp_path, train):
    model = tmp_path / "m.npz"
    refused(run_command("predict", model, train), "the model takes texts")
    several = write_csv(tmp_path / "s.csv", one=TEXTS, other=TEXTS)
    refused(run_command("predict", model, several), "no column 'text'")
    done("convert", train, tmp_path / "s.store")
    refused(run_command("predict", model, tmp_path / "s.store"), "is a store")
    refused(run_command("predict", model, several, "--schema", "x.json"), "--schema", code=2)
    holes = write_lines(tmp_path / "h.jsonl", text=["calm", None])
    refused(run_command("predict", model, holes), "line 2: the text is missing")


def test_a_function_of_ones_own_needs_python(tmp_path):
    fitted(FunctionTransformer(np.tanh), NUMBER * 1.0, tmp_path / "m.npz")
    held = dplasso.load(tmp_path / "m.npz")[-1].model_
    held.row_steps.steps[0]["params"]["func"] = {"function": "mine:own"}
    write_model(held, tmp_path / "m.npz")
    refused(run_command("predict", tmp_path / "m.npz", "x.svm"), "mine:own, which is not declared")
