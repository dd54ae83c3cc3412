import pytest

from dplasso.data.source_files import expand, source_files
from dplasso.errors import DataError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("part-10.svm", "part-2.svm", "part-1.svm", "other.npz", "odd[1].svm", "odd1.svm"):
        (tmp_path / name).write_text("1 1:1\n")
    (tmp_path / "part-3.svm").mkdir()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "part-4.svm").write_text("1 1:1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("part-1.svm", ["part-1.svm"]),
        ("missing.svm", ["missing.svm"]),  # said so when it is opened
        ("part-*.svm", ["part-1.svm", "part-2.svm", "part-10.svm"]),
        ("part-?.svm", ["part-1.svm", "part-2.svm"]),
        (["part-2.svm", "part-1*.svm"], ["part-2.svm", "part-1.svm", "part-10.svm"]),
        ("odd[1].svm", ["odd[1].svm"]),
        ("odd[12].svm", ["odd1.svm"]),
        ("deep/**/part-*.svm", ["deep/er/part-4.svm"]),
    ],
)
def test_names_and_patterns(folder, paths, expected):
    assert [str(path) for path in expand(paths)] == expected


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ("none-*.svm", r"none-\*\.svm: no file matches this pattern"),
        ([], "no data file was passed"),
        (["part-1.svm", "./part-1.svm"], "part-1.svm: the file is named twice"),
        (["part-*.svm", "part-2.svm"], "part-2.svm: the file is named twice"),
    ],
)
def test_no_file_and_a_file_twice(folder, paths, problem):
    with pytest.raises(DataError, match=problem):
        expand(paths)


def test_files_are_looked_up_once(folder):
    files = source_files("part-*.svm")
    assert source_files(files) is files
    assert (files.before(2), files.total) == (12, 18)
    assert files.name == "part-1.svm and 2 more"
    assert source_files("part-1.svm").name == "part-1.svm"
    with pytest.raises(DataError, match=r"/dev/null is not a file but a pipe or device"):
        source_files("/dev/null")
