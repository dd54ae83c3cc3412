"""Several files, patterns and label maps, through every command that reads data."""

import pytest

from cli.conftest import done, found

FIT = ("--epsilon", "50", "--n-iter", "10", "--seed", "3")


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


def test_parts_are_fitted_as_one_file(train, parts):
    names = [parts / f"part-{number}.svm" for number in (1, 2, 3)]
    ways = [[train], names, [parts / "part-*.svm"], [names[0], parts / "part-[23].svm"]]
    fits = [found("fit", *files, *FIT) for files in ways]
    counted = ("n_samples", "n_features", "nnz", "n_nonzero")
    whole, *others = [{name: report[name] for name in counted} for report in fits]
    assert whole["n_samples"] == 800
    assert others == [whole] * 3


def test_parts_are_tested_evaluated_and_predicted_as_one_file(train, parts, model):
    scores = found("evaluate", model, train, "--binarize")
    labels = done("predict", model, train, "--binarize").stdout
    assert labels.count("\n") == 800
    for test in ([parts / "part-*.svm"], [parts / "part-1.svm", parts / "part-[23].svm"]):
        options = [word for path in test for word in ("--test", path)]
        assert found("fit", train, *FIT, *options)["test"]["n_samples"] == 800
        assert found("evaluate", model, *test, "--binarize") == scores
        assert done("predict", model, *test, "--binarize").stdout == labels


def test_words_as_labels(train, parts, model):
    words, meaning = parts / "words-*.svm", ("--label-map", "no=-1,yes=1")
    report = found("fit", words, *FIT, *meaning, "--test", words)
    plain = found("fit", train, *FIT, "--classes", "-1,1", "--test", train)
    # The statement too: whoever maps the labels has declared them.
    assert report["privacy"] == plain["privacy"]
    assert report["test"] == plain["test"]
    options = ("--binarize", *meaning)
    scores = found("evaluate", model, words, *options)
    assert scores == found("evaluate", model, train, "--binarize")
    assert done("predict", model, words, *options).stdout.count("\n") == 800
