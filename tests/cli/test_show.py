"""``show`` and ``report``: what is inside a model file, on a terminal and on a page to sign."""

import json
import subprocess
import sys
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from cli.conftest import done, every_command, found, new_ledger, refused, run_command, said
from dplasso import DPFrankWolfeClassifier, DPLassoClassifier, DPLogisticRegression, load, save

BY_NOISE = "noise alone could have picked this"
NAMES = [
    "<script>alert(1)</script>",
    "[red]age[/red]",
    *(f"column {j} of twenty" for j in range(18)),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Give a model of each kind, over columns with awkward names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame((rng.random((2_000, 20)) < 0.5).astype(float), columns=NAMES)
    y = np.where(X.iloc[:, 0] > X.iloc[:, 1], "<yes>", "no")
    folder = tmp_path_factory.mktemp("models")
    estimators = {
        "vertices": DPFrankWolfeClassifier(epsilon=2.0, n_iter=40, classes=["no", "<yes>"]),
        "lasso": DPLassoClassifier(epsilon=15.0, delta=1e-4, max_weights=5),
        "logistic": DPLogisticRegression(epsilon=2.0, classes=["no", "<yes>"]),
        "seeded": DPFrankWolfeClassifier(epsilon=2.0, n_iter=5, random_state=0),
        "plain": DPLogisticRegression(epsilon=float("inf")),
    }
    for name, estimator in estimators.items():
        estimator.fit(X, y).save(folder / f"{name}.npz")
    return folder


def cells(page):
    """Return the text of a page's cells, and fail on what is not self-contained or not closed."""
    opened, texts = [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            assert tag not in ("script", "link", "img", "iframe"), tag
            assert not {name for name, _ in attrs} & {"src", "onclick"}
            assert dict(attrs).get("href", "#").startswith("#")
            if tag not in ("meta", "br", "rect", "path"):
                opened.append(tag)

        def handle_endtag(self, tag):
            if tag not in ("rect", "path"):
                assert opened.pop() == tag

        def handle_data(self, data):
            texts.append(data)

    Reader().feed(page)
    assert not opened
    assert "url(" not in page
    assert "@import" not in page
    return texts


@pytest.mark.parametrize("kind", ["vertices", "lasso", "logistic", "seeded", "plain"])
def test_show_fits_80_columns_and_says_what_the_file_says(models, kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = models / f"{kind}.npz"
    model = load(path)
    told = done("show", path, "--top", "5").stdout
    lines = told.splitlines()
    assert max(len(line) for line in lines if str(models) not in line) <= 80
    top = model.top_features(5)
    for name, value in top:
        # Several may have the same first digits.
        assert any(f"{value:+.3f}" in line and name[:10] in line for line in lines)
    assert ("NOT differentially private" in told) == (kind in ("seeded", "plain"))
    assert (BY_NOISE in told) == (top.clear is not None and not top.clear.all())
    document = found("show", path, "--top", "3")
    assert [one["name"] for one in document["weights"]] == list(top.index[:3])
    assert document["privacy"] == model.privacy_.to_dict()
    cautions = model.privacy_.cautions(
        getattr(model, "n_records_", None), classes=model.classes_.tolist()
    )
    assert [one["sentence"] for one in document["cautions"]] == [one.sentence for one in cautions]
    assert ("Caution (red): an epsilon of 15" in told) == (kind == "lasso")
    assert document["facts"]["digest"] == model.model_.digest
    assert document["intercept"] == model.intercept_[0]
    assert "Taken as public" in said("show", models / "vertices.npz", "--explain")


def test_help_loads_nothing_heavy_and_a_model_is_shown_without_what_trains_it(models, tmp_path):
    script = """if True:
        import sys
        from dplasso.cli import main

        def run_without(heavy, *commands):
            for command in commands:
                sys.argv = ["dplasso", *command]
                try:
                    main()
                except SystemExit as ended:
                    assert not ended.code, command
            assert not set(heavy.split()) & set(sys.modules), sorted(sys.modules)

        page, model, other, *words = sys.argv[1:]
        training = "numba sklearn matplotlib dp_accounting"
        run_without(f"{training} scipy numpy", *([*each.split(), "--help"] for each in words))
        for shown in (model, other):
            report = ["report", shown, "--out", page, "--force"]
            run_without(training, ["show", shown], report)
    """
    shown = tmp_path / "report.html", models / "lasso.npz", models / "logistic.npz"
    command = [sys.executable, "-c", script, *shown, "", *map(" ".join, every_command())]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("kind", ["vertices", "lasso", "logistic", "seeded", "plain"])
def test_the_page_is_one_file_with_everything_on_it(models, kind, tmp_path):
    path, page = models / f"{kind}.npz", tmp_path / "report.html"
    done("report", path, "--out", page)
    model, text = load(path), page.read_text(encoding="utf-8")
    told = cells(text)
    for paragraph in model.privacy_.text().split("\n\n"):
        assert paragraph in told or paragraph.startswith("Caution: ")
    for one in model.privacy_.cautions(
        getattr(model, "n_records_", None), classes=model.classes_.tolist()
    ):
        assert f"{one.sentence}." in told
    assert ("an epsilon of 15" in text) == (kind == "lasso")
    for name, _ in model.top_features(20):
        assert name in told
    # The part for whoever decides has clear ones alone.
    shown = model.top_features(20).rows()
    assert told.count(BY_NOISE) == sum(row["clear"] is False for row in shown)
    assert sha256(path.read_bytes()).hexdigest() in told
    assert model.model_.digest in told
    assert {"Name and role", "Place, date", "Signature"} <= set(told)
    assert "No ledger was given to this report." in told
    levels = {"vertices": "green", "logistic": "green"}
    assert f'class="verdict {levels.get(kind, "red")}"' in text
    assert "@media print" in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_names_the_entry_that_paid(train, tmp_path):
    ledger, other, page = (tmp_path / name for name in ("team.ledger", "other.ledger", "r.html"))
    models = tmp_path / "first.npz", tmp_path / "m.npz"
    new_ledger(ledger, 3, 1e-5, "visits")
    new_ledger(other, 3, 1e-5)
    for number, model in enumerate(models, 1):
        options = ("--ledger", ledger, "--purpose", f"reason {number}")
        done("fit", train, "--epsilon", "0.5", *options, "--model", model)
    done("report", model, "--out", page, "--ledger", ledger)
    told = cells(page.read_text(encoding="utf-8"))
    assert {"2 of team.ledger", "visits", "reason 2"} <= set(told)
    # Others' purposes are not this reader's; their shares are.
    assert "reason 1" not in page.read_text(encoding="utf-8")
    assert {"fit 1", "fit 2 (this model)", "left"} <= set(told)
    done("report", model, "--out", page, "--ledger", other, "--force")
    assert "No entry of other.ledger paid for this model" in page.read_text(encoding="utf-8")
    # The curator's purpose is no part of the model.
    assert b"reason 2" not in model.read_bytes()


def test_scores_on_the_page_are_private_and_of_this_model(train, tmp_path):
    model, other, page = (tmp_path / name for name in ("m.npz", "other.npz", "r.html"))
    for path in (model, other):
        done("fit", train, "--epsilon", "2", "--model", path)
    scores = {}
    for name, more in {"auc": (), "accuracy": (), "seeded": ("--seed", "1")}.items():
        metric = "auc" if name == "seeded" else name
        given = (train, "--epsilon", "1", "--metric", metric, *more, "--json")
        scores[name] = tmp_path / f"{name}.json"
        scores[name].write_text(done("evaluate", model, *given).stdout)
    exact = tmp_path / "exact.json"
    exact.write_text(done("evaluate", model, train, "--json").stdout)
    released = "--score", scores["auc"], "--score", scores["accuracy"]
    done("report", model, "--out", page, *released)
    told = cells(page.read_text(encoding="utf-8"))
    found = json.loads(scores["auc"].read_text())
    interval = f"with 95% confidence {found['low']:.3f} to {found['high']:.3f}"
    assert f"{found['value']:.3f}; {interval}" in told
    for path, words in (
        (exact, "holds no private score"),
        (train, "holds no private score"),
        (scores["seeded"], "the score is not private"),
    ):
        refused(run_command("report", model, "--out", page, "--force", "--score", path), words)
    strange = run_command("report", other, "--out", page, "--force", "--score", scores["auc"])
    refused(strange, "the score is of another model")


def test_columns_of_a_schema_are_named_and_the_schema_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 100, 900), "ward": rng.choice(["A", "B"], 900)})
    table["label"] = (table["age"] > 50).astype(int)
    table.assign(age2=table["age"]).to_csv(tmp_path / "t.csv", index=False)
    parts = [
        {"kind": "bins", "column": "age", "edges": [0, 50, 100]},
        {"kind": "number", "column": "age", "bound": 50, "center": 50},
        {"kind": "categories", "column": "ward", "categories": ["A", "B"]},
        {"kind": "hashed", "columns": ["age2"], "bits": 2},
        {"kind": "text", "column": "ward", "bits": 2},
        {"kind": "cross", "columns": ["age", "ward"], "bits": 3},
    ]
    (tmp_path / "s.json").write_text(json.dumps({"label": "label", "parts": parts}))
    model, page = tmp_path / "m.npz", tmp_path / "r.html"
    given = ("--schema", tmp_path / "s.json", "--method", "logistic", "--epsilon", 20)
    assert "50<=age<100" in said("fit", tmp_path / "t.csv", *given, "--model", model)
    assert {"age", "50<=age<100"} <= set(load(model).top_features(8).index)
    told = done("show", model).stdout
    words = (
        *("age: bins(edges=[0.0, 50.0, 100.0]", "age: number(bound=50.0", "ward: categories("),
        *("age2: hashed(bits=2", "ward: text(bits=2", "age, ward: cross(bits=3)"),
    )
    assert all(len(line) <= 80 for line in told.splitlines() if str(model) not in line)
    done("report", model, "--out", page)
    for text in (" ".join(told.split()), " ".join(cells(page.read_text()))):
        assert "made by a schema, which is in the file and must be public" in text
        for word in words:
            assert word in text
    shown = found("show", model)
    assert [part["kind"] for part in shown["schema"]["parts"]] == [part["kind"] for part in parts]
    assert "0<=age<50" in [row["name"] for row in shown["weights"]]


def test_weights_of_columns_in_large_units_are_no_zeros(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1e6]
    model = DPLogisticRegression(float("inf"), classes=[0, 1]).fit(X, X.sum(axis=1) > 0)
    model.save(tmp_path / "m.npz")
    assert "e-0" in said("show", tmp_path / "m.npz")


def test_centred_columns_are_named(tmp_path):
    X = np.random.default_rng(0).normal([50.0, 0.0, -20.0], size=(3_000, 3))
    model = DPLogisticRegression(1.0, classes=[0, 1]).fit(X, X[:, 0] > 50)
    save(model, tmp_path / "m.npz")
    centred = int(np.count_nonzero(model.column_center_))
    assert f"centred {centred} columns, whose weights are of" in said("show", tmp_path / "m.npz")
