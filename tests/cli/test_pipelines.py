"""Model files that hold a pipeline: show and report, and the way to predict."""

import csv

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import dplasso
from cli.conftest import done, found, refused, run_command, said
from dplasso import DPLogisticRegression, PublicEncoder

RNG = np.random.default_rng(0)
WORDS = ["calm", "clear", "dizzy", "fever"]
NUMBER = RNG.integers(0, 4, (600, 2))
TEXTS = [" ".join(WORDS[k] for k in row) for row in NUMBER]
ILL = np.where(NUMBER.sum(axis=1) > 3, "yes", "no")
WARDS = pd.DataFrame({"ward": RNG.choice(["A", "B"], 600)})


def fitted(step, X, path):
    pipeline = make_pipeline(step, DPLogisticRegression(20.0)).fit(X, ILL)
    dplasso.save(pipeline, path)
    return pipeline


def write_csv(path, name, values):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[name], *([value] for value in values)])
    return path


def test_words_are_named_what_makes_rows_is_said_and_python_predicts(tmp_path):
    model, page = tmp_path / "m.npz", tmp_path / "page.html"
    fitted(CountVectorizer(vocabulary=WORDS), TEXTS, model)
    shown = found("show", model)
    assert {one["name"] for one in shown["weights"]} == set(WORDS)
    assert "CountVectorizer" in said("show", model)
    done("report", model, "--out", page)
    assert "made by CountVectorizer(vocabulary=[" in page.read_text()
    assert "fever" in page.read_text()
    rows = write_csv(tmp_path / "t.csv", "text", TEXTS)
    for command in ("predict", "evaluate"):
        refused(run_command(command, model, rows), "holds a pipeline", "dplasso.load")


def test_an_encoders_schema_reads_tables_as_without_a_pipeline(tmp_path):
    schema = {"parts": [{"kind": "categories", "column": "ward", "categories": ["A", "B"]}]}
    pipeline = fitted(PublicEncoder(schema), WARDS, tmp_path / "m.npz")
    rows = write_csv(tmp_path / "t.csv", "ward", WARDS["ward"])
    predicted = done("predict", tmp_path / "m.npz", rows).stdout.split()
    assert predicted == pipeline.predict(WARDS).tolist()
