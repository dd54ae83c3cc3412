"""``python -m evidence paper``: as a command, resumed, refused, and with the five names."""

import bz2
import csv
import lzma
from pathlib import Path

import pytest
from evidence.__main__ import main, time_left
from evidence.published import FILES, NAMES, TABLE2, TITLES
from sklearn.datasets import load_svmlight_file

QUICK = ("--iterations", "20", "--repeats", "1", "--limit", "0", "--jobs", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(item):
    with (Path("made") / f"{item}.csv").open() as file:
        return list(csv.DictReader(file))


def paper(item, *arguments):
    return main([f"paper/{item}", *arguments, "--out", "made"])


@pytest.mark.parametrize("item", ["figure2", "table4"])
def test_each_item_on_a_twin(folder, item, capsys):
    assert paper(item, "--data", "rcv1", "--twin", "--scale", "0.01", *QUICK) == 0
    assert {row["data"] for row in written(item)} == {"rcv1-twin"}
    for kind in ("csv", "png", "svg", "md"):
        assert (folder / "made" / f"{item}.{kind}").stat().st_size > 0
    shown = capsys.readouterr()
    assert "rcv1-twin" in shown.out
    assert "on rcv1-twin" in shown.err
    assert f"{item}.csv" in shown.err


def test_the_five_names_in_this_folder(rows, capsys):
    content = rows.read_bytes()
    pack = {"bz2": bz2.compress, "xz": lzma.compress}
    for name in FILES.values():
        Path(name).write_bytes(pack[name.rpartition(".")[2]](content))
    named = (word for name in NAMES for word in ("--data", name))
    assert paper("table2", *named) == 0
    counted = {row["data"]: row for row in written("table2") if row["kind"] == "file"}
    assert list(counted) == list(NAMES)
    X, _ = load_svmlight_file(str(rows))
    for name in NAMES:
        assert int(counted[name]["rows"]) == X.shape[0]
        assert int(counted[name]["nonzeros"]) == X.nnz
        assert int(counted[name]["columns"]) == TABLE2[name][1]
    capsys.readouterr()
    assert paper("table2") == 0
    assert TITLES["rcv1"] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table5",), "there is no item 'table5'"),
        (("table4", "--data", "url"), "url_combined.bz2"),
        (("figure1", "--data", "one.svm"), "two different labels are needed, the data hold 1"),
        (("figure1", "--data", "rcv1@0.01", *QUICK, "--out", "one.svm"), "one.svm"),
    ],
)
def test_refused(arguments, words, folder, capsys):
    Path("one.svm").write_text("1 1:1\n1 2:1\n")
    assert main([f"paper/{arguments[0]}", *QUICK, "--out", "made", *arguments[1:]]) == 2
    assert words in capsys.readouterr().err
    assert not list(folder.glob("made/*.csv"))


def test_counts_are_at_least_one_and_the_time_left_is_told(capsys):
    with pytest.raises(SystemExit):
        paper("table4", "--data", "rcv1@0.01", "--repeats", "0")
    assert "argument --repeats: must be at least 1, got 0" in capsys.readouterr().err
    told = {(10, 0.001): "", (10, 0.5): "about 10 s left", (3600, 0.25): "about 3 hours left"}
    assert {given: time_left(*given) for given in told} == told
