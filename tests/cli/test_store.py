"""`fit`, `predict` and `evaluate` on a store."""

import json

import pytest

import dplasso
from cli.conftest import refused
from dplasso.data.store import open_store


@pytest.fixture
def stores(run, train, held_out, tmp_path):
    """Give the training and test rows as stores of 30 columns, values made binary."""
    made = []
    for source in (train, held_out):
        path = tmp_path / f"{source.stem}.store"
        result = run("convert", source, path, "--features", 30, "--binarize")
        assert result.exit_code == 0, result.output
        made.append(path)
    return made


def test_the_same_model_as_from_the_file(run, stores, train, held_out, tmp_path):
    data, test = stores
    common = ["--epsilon", 5, "--n-iter", 30, "--seed", 3, "--json"]
    from_store = run("fit", data, "--test", test, "--model", tmp_path / "s.npz", *common)
    from_file = run(
        *("fit", train, "--test", held_out, "--model", tmp_path / "f.npz", *common),
        *("--binarize", "--features", 30),
    )
    assert from_store.exit_code == from_file.exit_code == 0, from_store.output
    one, other = json.loads(from_store.stdout), json.loads(from_file.stdout)
    for name in ("n_samples", "n_features", "nnz", "n_nonzero", "test"):
        assert one[name] == other[name], name
    models = [dplasso.load(tmp_path / name) for name in ("s.npz", "f.npz")]
    assert models[0].transcript_ == models[1].transcript_
    predicted = [
        run("predict", tmp_path / "s.npz", test, "--proba"),
        run("predict", tmp_path / "s.npz", held_out, "--binarize", "--proba"),
    ]
    assert predicted[0].stdout == predicted[1].stdout
    assert len(predicted[0].stdout.splitlines()) == 300
    scores = [
        run("evaluate", tmp_path / "s.npz", test, "--json"),
        run("evaluate", tmp_path / "s.npz", held_out, "--binarize", "--json"),
    ]
    assert json.loads(scores[0].stdout) == json.loads(scores[1].stdout)


def test_where_the_columns_came_from_is_said_as_the_store_knows_it(run, stores, monkeypatch):
    from dplasso.data.store import Store

    def said(declared):
        monkeypatch.setattr(Store, "columns_declared", declared, raising=False)
        result = run("fit", stores[0], "--epsilon", 1, "--n-iter", 2)
        assert result.exit_code == 0, result.output
        return " ".join(result.stdout.split())

    assert "The number of columns" not in said(True)
    assert "taken from the data when the store was made" in said(False)
    assert "is that of the store and is treated as public" in said(None)


def test_binarized_values_are_not_stored(stores):
    assert open_store(stores[0]).header.constant == 1.0


def test_labels_are_mapped_by_the_conversion(run, tmp_path):
    (tmp_path / "words.svm").write_text("neg 1:1\npos 2:1\npos 1:1 2:1\n")
    (tmp_path / "words.csv").write_text("label,text\nneg,a b\npos,b c\n")
    mapped = ["--label-map", "neg=0,pos=1"]
    assert run("convert", tmp_path / "words.svm", tmp_path / "a", *mapped).exit_code == 0
    assert open_store(tmp_path / "a").y.tolist() == [0.0, 1.0, 1.0]
    result = run("convert", "--text", tmp_path / "words.csv", tmp_path / "b", *mapped)
    assert result.exit_code == 0, result.output
    assert open_store(tmp_path / "b").y.tolist() == [0.0, 1.0]
    strange = run("convert", "--text", tmp_path / "words.csv", tmp_path / "c", "--label-map", "x=1")
    refused(strange, "the label of row 1 is not in the label map")
    assert not (tmp_path / "c").exists()


def test_several_files_by_a_pattern(run, train, held_out, tmp_path):
    (tmp_path / "part-1.svm").write_text(train.read_text())
    (tmp_path / "part-2.svm").write_text(held_out.read_text())
    assert run("convert", tmp_path / "part-*.svm", tmp_path / "all").exit_code == 0
    assert open_store(tmp_path / "all").shape == (1100, 30)
