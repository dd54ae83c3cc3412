"""``dplasso paper``: from the command line, resumed, refused, and with the five names."""

import csv
import json

import pytest
from evidence.published import NAMES, TITLES

from datasets.file_server import serving
from dplasso.cli.paper import time_left
from dplasso.data.files import read_data
from dplasso.datasets import catalog
from evidence import cells

QUICK = ("--iterations", 20, "--repeats", 1, "--limit", 0, "--jobs", 1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(catalog.FOLDER_VARIABLE, str(tmp_path / "downloads"))
    monkeypatch.delenv(catalog.BASE_URL_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("item", ["figure2", "table4"])
def test_each_item_on_a_twin(run, folder, item):
    result = run("paper", item, "--data", "rcv1", "--twin", "--scale", 0.01, *QUICK, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    rows = report["items"][item]["rows"]
    assert {row["data"] for row in rows} == {"rcv1-twin"}
    for kind in ("csv", "png", "svg", "md"):
        assert (folder / "paper" / f"{item}.{kind}").stat().st_size > 0
    with (folder / "paper" / f"{item}.csv").open() as file:
        assert len(list(csv.reader(file))) == 1 + len(rows)


def test_text_for_people(run):
    result = run("paper", "figure3", "--data", "rcv1@0.01", *QUICK, "--out", "made/here")
    assert result.exit_code == 0
    for words in ("Figure 3", "at most 3", "rcv1-twin", "Written to made/here"):
        assert words in result.stdout
    assert "trajectory on rcv1-twin: algorithm-1" in result.stderr


def test_finished_cells_are_not_run_again(run, monkeypatch):
    arguments = ("paper", "figure1", "--data", "rcv1@0.01", *QUICK, "--json")
    first = json.loads(run(*arguments).stdout)["items"]

    def refuse(*_):
        raise AssertionError("a cell was measured")

    monkeypatch.setattr(cells, "_keep", refuse)
    assert json.loads(run(*arguments).stdout)["items"] == first
    # Figures share their runs.
    assert run("paper", "figure4", *arguments[2:]).exit_code == 0
    with pytest.raises(AssertionError, match="a cell was measured"):
        raise run("paper", "figure1", "--data", "rcv1@0.01", *QUICK[2:]).exception


def test_the_five_names_from_a_server(run, rows_file, packed_five):
    with serving(packed_five) as server:
        for name in NAMES:
            catalog.fetch(name, url=server.url)
    result = run("paper", "table2", *(x for name in NAMES for x in ("--data", name)), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["items"]["table2"]["rows"]
    counted = {row["data"]: row for row in found if row["kind"] == "file"}
    assert list(counted) == list(NAMES)
    data = read_data(rows_file)
    for name in NAMES:
        published = next(row for row in found if row["data"] == name)
        assert counted[name]["rows"] == data.X.shape[0]
        assert counted[name]["nonzeros"] == data.X.nnz
        assert counted[name]["columns"] == published["columns"]
    fitted = run("paper", "figure3", "--data", "rcv1", *QUICK)
    assert fitted.exit_code == 0
    assert TITLES["rcv1"] in run("paper", "table2").stdout


def test_rows_of_one_class_are_refused(run, folder):
    one_class = folder / "one.svm"
    one_class.write_text("1 1:1\n1 2:1\n")
    failed = run("paper", "figure1", "--data", one_class, *QUICK)
    assert failed.exit_code == 1
    assert "error: one.svm: two different labels are needed, the data hold 1\n" in failed.stderr
    assert not list((folder / "paper").glob("*.csv"))


@pytest.mark.parametrize(
    ("seconds", "share", "text"),
    [
        (0.5, 0.5, ""),
        (10, 0.001, ""),
        (10, 0.5, "about 10 s left"),
        (60, 0.1, "about 9 min left"),
        (3600, 0.25, "about 3.0 h left"),
    ],
)
def test_time_left(seconds, share, text):
    assert time_left(seconds, share) == text


@pytest.fixture
def rows_file(train):
    return train


@pytest.fixture
def packed_five(rows_file):
    import bz2
    import lzma

    content = rows_file.read_bytes()
    pack = {"bz2": bz2.compress, "xz": lzma.compress}
    names = [catalog.CATALOG[name].files[0] for name in NAMES]
    return {name: pack[name.rpartition(".")[2]](content) for name in names}
