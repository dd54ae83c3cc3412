"""Every way to give rows: files, patterns, stores and people; and what is predicted."""

import json

import pytest

from cli.conftest import done, found, refused, run_command, said

SEEDED = ("--epsilon", "50", "--seed", "3")


@pytest.fixture(scope="module")
def parts(train, tmp_path_factory):
    """The training rows in three files."""
    folder = tmp_path_factory.mktemp("parts")
    lines = train.read_text().splitlines(keepends=True)
    for number, rows in enumerate((lines[:300], lines[300:301], lines[301:]), start=1):
        (folder / f"part-{number}.svm").write_text("".join(rows))
    return folder


def test_parts_are_one_data_set_in_every_command(train, parts, model):
    names = [parts / f"part-{number}.svm" for number in (1, 2, 3)]
    ways = [[train], [names[0], parts / "part-[23].svm"]]
    scores, labels, fits = [], [], []
    for files in ways:
        tests = [word for path in files for word in ("--test", path)]
        report = found("fit", *files, *SEEDED, *tests)
        counted = ("n_samples", "n_features", "nnz", "n_nonzero")
        fits.append([report[name] for name in counted])
        assert report["test"]["n_samples"] == 800
        scores.append(found("evaluate", model, *files, "--binarize"))
        labels.append(done("predict", model, *files, "--binarize").stdout)
    assert fits == [[800, 30, *fits[0][2:]]] * 2
    assert scores == scores[:1] * 2
    assert labels == labels[:1] * 2
    assert labels[0].count("\n") == 800


# --- stores --------------------------------------------------------------------------------------


def test_a_store_gives_the_model_of_the_file_and_knows_its_columns(train, tmp_path):
    data, undeclared, model = (tmp_path / name for name in ("d.store", "u.store", "m.npz"))
    read = ("--binarize", "--features", 30)
    done("convert", train, data, *read)
    done("convert", train, undeclared)
    common = ("--epsilon", 5, "--method", "lasso", "--seed", 3, "--test")
    one = found("fit", data, *common, data, "--model", model)
    other = found("fit", train, *common, train, *read)
    for name in ("n_samples", "n_features", "nnz", "n_nonzero", "test", "heaviest"):
        assert one[name] == other[name], name
    rows = (data,), (train, "--binarize")
    predicted, again = (done("predict", model, *given, "--proba").stdout for given in rows)
    assert predicted == again
    # Below the name of the class.
    assert predicted.count("\n") == 1 + 800
    scores, other_scores = (found("evaluate", model, *given) for given in rows)
    assert scores == other_scores


def test_a_number_of_columns_from_the_data_is_marked(train, tmp_path):
    """One record with a column of its own would show in the model."""
    wide, model, words = tmp_path / "w.svm", tmp_path / "m.npz", "number of columns was taken"
    wide.write_text(train.read_text() + "1 99:1\n")
    declared, undeclared = tmp_path / "d.store", tmp_path / "u.store"
    done("convert", train, declared, "--features", 30)
    done("convert", wide, undeclared)
    fit, threads = ("--epsilon", 1, "--classes=-1,1"), ("--cluster", "threads")
    for marked, *data in (
        (True, wide),
        (True, undeclared),
        (True, undeclared, *threads),
        (False, train, "--features", 30),
        (False, declared),
        (False, declared, *threads),
    ):
        options = (*data, *fit, "--model", model, "--force")
        result = done("fit", *options, "--json")
        written = json.loads(result.stdout)
        assert (words in result.stderr) == marked
        assert ("n_features" in written["not_for_release"]) == marked
        for cautions in (written["cautions"], found("show", model)["cautions"]):
            assert [words in one["sentence"] for one in cautions] == [True] * marked


# --- people --------------------------------------------------------------------------------------


def test_a_table_of_people_and_its_store_give_the_same_model(visits, schema, tmp_path):
    rows, people = (visits, "--schema", schema), ("--person-column", "patient")
    common = ("--epsilon", 5, "--seed", 3, "--classes", "no,yes")
    done("convert", visits, tmp_path / "v.store", *rows[1:], *people)
    limit = ("--rows-per-person", 2, *common)
    one = found("fit", *rows, *people, *limit, "--model", tmp_path / "m.npz")
    other = found("fit", tmp_path / "v.store", *limit)
    assert one["heaviest"] == other["heaviest"]
    assert one["privacy"] == other["privacy"]
    assert one["privacy"]["rows_per_person"] == 2
    # A model is applied to tables of whomever.
    done("evaluate", tmp_path / "m.npz", visits)
    told = said("fit", tmp_path / "v.store", *common)
    assert "The fit used at most 1 row of each person" in told


# --- predictions ---------------------------------------------------------------------------------


def test_columns_are_widened_and_may_count_from_zero(model, tmp_path):
    one_based, zero_based = tmp_path / "one.svm", tmp_path / "zero.svm"
    one_based.write_text("+1 1:1 5:1\n-1 2:1 9:1\n")
    zero_based.write_text("+1 0:1 4:1\n-1 1:1 8:1\n")
    assert done("predict", model, one_based).stdout == "1\n-1\n"
    first = done("predict", model, one_based, "--proba").stdout
    out = tmp_path / "probabilities.txt"
    given = ("predict", model, zero_based, "--proba", "--zero-based", "--out", out)
    assert done(*given).stdout == ""
    assert out.read_text() == first


# --- conversions ----------------------------------------------------------------------------------


def test_json_of_a_conversion(train, tmp_path):
    for amount in ("2GB", " 1.5 gib ", "500M", "100000000"):
        report = found("convert", train, tmp_path / "s", "--memory", amount, "--force")
    assert (report["n_samples"], report["n_features"]) == (800, 30)
    assert report["bytes"] == sum(report["arrays"].values())
    info = found("data", "info", tmp_path / "s")
    assert report.pop("seconds") > 0
    assert info.pop("verified") is False
    assert "column" in report.pop("public")
    curators = report["not_for_release"]
    assert {"n_samples", "nnz", "largest_value", "labels", "n_features"} < {*curators}
    assert curators.pop() == "seconds"
    assert info == report
    assert sum(count for _, count in info["labels"]) == 800


def test_info_of_a_store(train, tmp_path):
    store = tmp_path / "train.store"
    told = said("convert", train, store)
    assert "declare it with --features" in told
    assert "--model model.npz --classes NEG,POS" in told
    content = bytearray((store / "rows.indices.npy").read_bytes())
    content[500] ^= 1
    (store / "rows.indices.npy").write_bytes(content)
    assert "not verified" in said("data", "info", store)
    verified = run_command("data", "info", store, "--verify")
    refused(verified, "rows.indices.npy is damaged: the checksum of bytes")
    (tmp_path / "ones.svm").write_text("1 1:1 2:1\n-1 3:1\n")
    done("convert", tmp_path / "ones.svm", tmp_path / "ones")
    assert "all 1, so not stored" in said("data", "info", tmp_path / "ones")
    (tmp_path / "t.csv").write_text("city,y\nBonn,1\nRom,0\n")
    city = {"kind": "categories", "column": "city", "categories": ["Rom"]}
    (tmp_path / "schema.json").write_text(json.dumps({"label": "y", "parts": [city]}))
    done("convert", tmp_path / "t.csv", tmp_path / "t", "--schema", tmp_path / "schema.json")
    assert "schema city: categories(categories=['Rom']" in said("data", "info", tmp_path / "t")
