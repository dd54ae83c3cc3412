import gzip
import json

import pytest
from evidence.benchmarks.reading import section

from evidence import __main__ as command


@pytest.fixture
def files(tmp_path):
    text = b"".join(b"%d %d:0.25 9:1e-3\n" % (i % 2, i % 8 + 1) for i in range(500))
    (tmp_path / "small.svm").write_bytes(text)
    (tmp_path / "small.svm.gz").write_bytes(gzip.compress(text))
    return [tmp_path / "small.svm", tmp_path / "small.svm.gz"]


def test_both_readers_are_timed_and_compared(files, capsys):
    options = ["--files", *map(str, files), "--repeats", "2", "--threads", "1", "2"]
    assert command.main(["benchmarks/reading", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert [one["data"]["file"] for one in found] == ["small.svm", "small.svm.gz"]
    for one in found:
        assert one["agree"] is True
        assert (one["data"]["rows"], one["data"]["columns"], one["data"]["nnz"]) == (500, 9, 1000)
        assert list(one["seconds"]) == ["scikit-learn", "dplasso, 1 thread", "dplasso, 2 threads"]
        assert all(len(runs) == 2 for runs in one["runs"].values())
    text = "\n".join(map(str, section(found)))
    assert text.count("agree entry by entry") == 2
    assert text.count("asked of plain text: 8") == 1
