"""``dplasso paper``: from the command line, resumed, refused, and with the five names."""

import bz2
import csv
import lzma

import pytest
from evidence.published import NAMES, TITLES

from cli.conftest import done, found
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
def test_each_item_on_a_twin(folder, item):
    report = found("paper", item, "--data", "rcv1", "--twin", "--scale", 0.01, *QUICK)
    rows = report["items"][item]["rows"]
    assert {row["data"] for row in rows} == {"rcv1-twin"}
    for kind in ("csv", "png", "svg", "md"):
        assert (folder / "paper" / f"{item}.{kind}").stat().st_size > 0
    with (folder / "paper" / f"{item}.csv").open() as file:
        assert len(list(csv.reader(file))) == 1 + len(rows)


def test_text_for_people():
    result = done("paper", "figure3", "--data", "rcv1@0.01", *QUICK, "--out", "made/here")
    for words in ("Figure 3", "at most 3", "rcv1-twin", "Written to made/here"):
        assert words in result.stdout
    assert "trajectory on rcv1-twin: algorithm-1" in result.stderr


def test_finished_cells_are_not_run_again(run, monkeypatch):
    arguments = ("paper", "figure1", "--data", "rcv1@0.01", *QUICK)
    first = found(*arguments)["items"]

    def refuse(*_):
        raise AssertionError("a cell was measured")

    monkeypatch.setattr(cells, "_keep", refuse)
    assert found(*arguments)["items"] == first
    # Figures share their runs.
    done("paper", "figure4", *arguments[2:])
    with pytest.raises(AssertionError, match="a cell was measured"):
        raise run("paper", "figure1", "--data", "rcv1@0.01", *QUICK[2:]).exception


def test_the_five_names_from_a_server(train):
    content = train.read_bytes()
    pack = {"bz2": bz2.compress, "xz": lzma.compress}
    files = [catalog.CATALOG[name].files[0] for name in NAMES]
    with serving({name: pack[name.rpartition(".")[2]](content) for name in files}) as server:
        for name in NAMES:
            catalog.fetch(name, url=server.url)
    named = (word for name in NAMES for word in ("--data", name))
    rows = found("paper", "table2", *named)["items"]["table2"]["rows"]
    counted = {row["data"]: row for row in rows if row["kind"] == "file"}
    assert list(counted) == list(NAMES)
    data = read_data(train)
    for name in NAMES:
        published = next(row for row in rows if row["data"] == name)
        assert counted[name]["rows"] == data.X.shape[0]
        assert counted[name]["nonzeros"] == data.X.nnz
        assert counted[name]["columns"] == published["columns"]
    done("paper", "figure3", "--data", "rcv1", *QUICK)
    assert TITLES["rcv1"] in done("paper", "table2").stdout


def test_rows_of_one_class_are_refused(folder):
    one_class = folder / "one.svm"
    one_class.write_text("1 1:1\n1 2:1\n")
    failed = done("paper", "figure1", "--data", one_class, *QUICK, code=1)
    assert "error: one.svm: two different labels are needed, the data hold 1\n" in failed.stderr
    assert not list((folder / "paper").glob("*.csv"))


@pytest.mark.parametrize(
    ("seconds", "share", "text"),
    [
        (0.5, 0.5, ""),
        (10, 0.001, ""),
        (10, 0.5, "about 10 s left"),
        (60, 0.1, "about 9 minutes left"),
        (3600, 0.25, "about 3 hours left"),
    ],
)
def test_time_left(seconds, share, text):
    assert time_left(seconds, share) == text
