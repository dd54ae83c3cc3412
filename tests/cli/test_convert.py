"""`dplasso convert` and `dplasso data info`."""

import json
from pathlib import Path

import pytest

from cli.conftest import refused
from dplasso.data.files import read_data
from dplasso.data.store import open_store


@pytest.fixture
def store(run, train, tmp_path):
    result = run("convert", str(train), str(tmp_path / "train.store"))
    assert result.exit_code == 0, result.output
    return tmp_path / "train.store"


def test_converts_what_the_reader_reads(run, train, store):
    data = read_data(train)
    opened = open_store(store, verify=True)
    assert (opened.X.tocsr() != data.X).nnz == 0
    assert opened.y.tolist() == data.y.tolist()


def test_says_what_was_converted(run, train, tmp_path):
    result = run("convert", str(train), str(tmp_path / "s"), "--memory", "100MB", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "800 rows, 30 columns" in result.output
    assert "declare it with --features" in " ".join(result.output.split())
    result = run("convert", str(train), str(tmp_path / "s"), "--force", "--features", "50")
    assert "800 rows, 50 columns" in result.output
    assert "declare it" not in result.output


def test_json(run, train, tmp_path):
    result = run("convert", str(train), str(tmp_path / "s"), "--json")
    report = json.loads(result.stdout)
    assert (report["n_samples"], report["n_features"]) == (800, 30)
    assert report["bytes"] == sum(report["arrays"].values())
    info = json.loads(run("data", "info", str(tmp_path / "s"), "--json").stdout)
    assert report.pop("seconds") > 0
    assert info.pop("verified") is False
    assert "column" in report.pop("public")
    assert info == report


def test_info_for_people(run, store):
    text = " ".join(run("data", "info", str(store)).output.split())
    assert "rows 800" in text
    assert "columns 30 (30 with entries)" in text
    assert "not compared" in text
    text = " ".join(run("data", "info", str(store), "--verify").output.split())
    assert "every checksum fits" in text


def test_info_of_ones(run, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 2:1\n-1 3:1\n")
    run("convert", str(tmp_path / "a.svm"), str(tmp_path / "s"))
    assert "all 1, so not stored" in run("data", "info", str(tmp_path / "s")).output


def test_a_flipped_byte_is_found_by_verify_alone(run, store):
    path = Path(store) / "columns.indices.npy"
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    assert run("data", "info", str(store)).exit_code == 0
    verified = run("data", "info", store, "--verify")
    refused(verified, "columns.indices.npy is damaged: its checksum does not fit")


def test_amounts_of_memory():
    from dplasso.cli.convert import parse_memory

    assert parse_memory("2GB") == 2 * 10**9
    assert parse_memory(" 1.5 gib ") == 3 * 2**29
    assert parse_memory("500M") == 500 * 10**6
    assert parse_memory("100000000") == 10**8
