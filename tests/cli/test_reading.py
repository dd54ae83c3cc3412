"""Several files, patterns and label maps, through every command that reads data."""

import json

import pytest

FIT = ("--epsilon", "50", "--n-iter", "10", "--seed", "3", "--json")


@pytest.fixture(scope="module")
def parts(train, tmp_path_factory):
    """The training rows in three files, and once more with words as labels."""
    folder = tmp_path_factory.mktemp("parts")
    lines = train.read_text().splitlines(keepends=True)
    for number, rows in enumerate((lines[:300], lines[300:301], lines[301:]), start=1):
        text = "".join(rows)
        (folder / f"part-{number}.svm").write_text(text)
        (folder / f"words-{number}.svm").write_text(
            text.replace("+1 ", "yes ").replace("-1 ", "no ")
        )
    return folder


def fitted(result):
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    return {name: report[name] for name in ("n_samples", "n_features", "nnz", "n_nonzero")}


def test_parts_are_fitted_as_one_file(run, train, parts):
    whole = fitted(run("fit", train, *FIT))
    assert whole["n_samples"] == 800
    names = [parts / f"part-{number}.svm" for number in (1, 2, 3)]
    assert fitted(run("fit", *names, *FIT)) == whole
    assert fitted(run("fit", parts / "part-*.svm", *FIT)) == whole
    assert fitted(run("fit", names[0], *FIT, parts / "part-[23].svm")) == whole


def test_parts_are_tested_evaluated_and_predicted_as_one_file(run, train, parts, model):
    for test in ([parts / "part-*.svm"], [parts / "part-1.svm", parts / "part-[23].svm"]):
        options = [word for path in test for word in ("--test", path)]
        result = run("fit", train, *FIT, *options)
        assert json.loads(result.stdout)["test"]["n_samples"] == 800
        scores = run("evaluate", model, *test, "--binarize", "--json")
        assert scores.stdout == run("evaluate", model, train, "--binarize", "--json").stdout
        labels = run("predict", model, *test, "--binarize")
        assert labels.stdout == run("predict", model, train, "--binarize").stdout
        assert labels.stdout.count("\n") == 800


def test_words_as_labels(run, train, parts, model):
    words, meaning = parts / "words-*.svm", ("--label-map", "no=-1,yes=1")
    report = json.loads(run("fit", words, *FIT, *meaning, "--test", words).stdout)
    plain = json.loads(run("fit", train, *FIT, "--classes", "-1,1", "--test", train).stdout)
    # The statement too: whoever maps the labels has declared them.
    assert report["privacy"] == plain["privacy"]
    assert report["test"] == plain["test"]
    options = ("--binarize", *meaning)
    scores = run("evaluate", model, words, *options, "--json")
    assert scores.stdout == run("evaluate", model, train, "--binarize", "--json").stdout
    assert run("predict", model, words, *options).stdout.count("\n") == 800
