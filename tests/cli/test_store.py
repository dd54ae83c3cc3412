"""`fit`, `predict` and `evaluate` on a store."""

import pytest

import dplasso
from cli.conftest import done, found, refused, said
from dplasso.data.store import open_store


@pytest.fixture
def stores(train, held_out, tmp_path):
    """Give the training and test rows as stores of 30 columns, values made binary."""
    made = [tmp_path / f"{source.stem}.store" for source in (train, held_out)]
    for source, path in zip((train, held_out), made, strict=True):
        done("convert", source, path, "--features", 30, "--binarize")
    return made


def test_the_same_model_as_from_the_file(stores, train, held_out, tmp_path):
    data, test = stores
    models = tmp_path / "s.npz", tmp_path / "f.npz"
    common = ["--epsilon", 5, "--method", "lasso", "--n-iter", 30, "--seed", 3, "--model"]
    one = found("fit", data, "--test", test, *common, models[0])
    read = ("--binarize", "--features", 30)
    other = found("fit", train, "--test", held_out, *common, models[1], *read)
    for name in ("n_samples", "n_features", "nnz", "n_nonzero", "test"):
        assert one[name] == other[name], name
    assert dplasso.load(models[0]).transcript_ == dplasso.load(models[1]).transcript_
    rows = (test,), (held_out, "--binarize")
    predicted = [done("predict", models[0], *those, "--proba").stdout for those in rows]
    assert predicted[0] == predicted[1]
    # Below the name of the class.
    assert len(predicted[0].splitlines()) == 1 + 300
    scores = [found("evaluate", models[0], *those) for those in rows]
    assert scores[0] == scores[1]


def test_where_the_columns_came_from_is_said_as_the_store_knows_it(stores, monkeypatch):
    for declared, words in (
        (True, None),
        (False, "taken from the data when the store was made"),
        (None, "is that of the store and is treated as public"),
    ):
        monkeypatch.setattr("dplasso.data.store.Store.columns_declared", declared, raising=False)
        told = said("fit", stores[0], "--epsilon", 1, "--n-iter", 2)
        assert words in told if words else "The number of columns" not in told


def test_binarized_values_are_not_stored(stores):
    assert open_store(stores[0]).header.constant == 1.0


def test_labels_are_mapped_by_the_conversion(run, tmp_path):
    (tmp_path / "words.svm").write_text("neg 1:1\npos 2:1\npos 1:1 2:1\n")
    (tmp_path / "words.csv").write_text("label,text\nneg,a b\npos,b c\n")
    mapped = ["--label-map", "neg=0,pos=1"]
    done("convert", tmp_path / "words.svm", tmp_path / "a", *mapped)
    assert open_store(tmp_path / "a").y.tolist() == [0.0, 1.0, 1.0]
    done("convert", "--text", tmp_path / "words.csv", tmp_path / "b", *mapped)
    assert open_store(tmp_path / "b").y.tolist() == [0.0, 1.0]
    strange = run("convert", "--text", tmp_path / "words.csv", tmp_path / "c", "--label-map", "x=1")
    refused(strange, "the label of row 1 is not in the label map")
    assert not (tmp_path / "c").exists()


def test_several_files_by_a_pattern(train, held_out, tmp_path):
    (tmp_path / "part-1.svm").write_text(train.read_text())
    (tmp_path / "part-2.svm").write_text(held_out.read_text())
    done("convert", tmp_path / "part-*.svm", tmp_path / "all")
    assert open_store(tmp_path / "all").shape == (1100, 30)
