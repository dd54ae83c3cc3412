"""`dplasso convert` and `dplasso data info`: the right columns, and what of them is public."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from cli.conftest import done, found, refused, run_command, said


def test_json(train, tmp_path):
    for amount in ("2GB", " 1.5 gib ", "500M", "100000000"):
        report = found("convert", train, tmp_path / "s", "--memory", amount, "--force")
    assert (report["n_samples"], report["n_features"]) == (800, 30)
    assert report["bytes"] == sum(report["arrays"].values())
    info = found("data", "info", tmp_path / "s")
    assert report.pop("seconds") > 0
    assert info.pop("verified") is False
    assert "column" in report.pop("public")
    assert info == report


def test_info_for_people(train, tmp_path):
    store = tmp_path / "train.store"
    assert "declare it with --features" in said("convert", train, store)
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


def test_without_pyarrow(tmp_path, monkeypatch):
    table, schema = tmp_path / "t.parquet", tmp_path / "schema.json"
    pq.write_table(pa.table({"age": [1, 2], "y": [0, 1]}), table)
    part = {"kind": "bins", "column": "age", "edges": [1.5]}
    schema.write_text(json.dumps({"label": "y", "parts": [part]}))
    for name in ("text_tables", "arrow_tables", "table_batches"):
        monkeypatch.delitem(sys.modules, f"dplasso.data.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    lacking = run_command("convert", table, "--schema", schema, tmp_path / "out.store")
    refused(lacking, "pip install 'dplasso[arrow]'")
