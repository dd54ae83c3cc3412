"""Model files that hold a pipeline: show and report, and the way to predict."""

import csv

import numpy as np
import pandas as pd
import pytest
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


def test_words_are_named_and_the_page_says_what_makes_rows(of_texts, tmp_path):
    shown = found("show", tmp_path / "m.npz")
    assert {one["name"] for one in shown["weights"]} == set(WORDS)
    done("report", tmp_path / "m.npz", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "made by CountVectorizer(vocabulary=[" in page
    assert "fever" in page
    assert "CountVectorizer" in said("show", tmp_path / "m.npz")


def test_an_encoders_schema_reads_tables_as_without_a_pipeline(tmp_path):
    schema = {"parts": [{"kind": "categories", "column": "ward", "categories": ["A", "B"]}]}
    pipeline = fitted(PublicEncoder(schema), WARDS, tmp_path / "m.npz")
    rows = write_csv(tmp_path / "t.csv", ward=WARDS["ward"].tolist())
    predicted = done("predict", tmp_path / "m.npz", rows).stdout.split()
    assert predicted == pipeline.predict(WARDS).tolist()


def test_other_pipelines_predict_in_python(of_texts, tmp_path):
    rows = write_csv(tmp_path / "t.csv", text=TEXTS)
    for command in ("predict", "evaluate"):
        refused(run_command(command, tmp_path / "m.npz", rows), "holds a pipeline", "dplasso.load")
