"""The load command: a small case runs through, and a broken promise is told."""

import json
from dataclasses import replace

from evidence.assurance import load


def small(**changes):
    return replace(load.CASES["longest"], n_rows=50, n_columns=300, n_iter=40, **changes)


def test_a_case_is_run_and_measured():
    case = small()
    result = load.run_case(replace(case, bytes_a_column=2**24), 0)
    assert result["passed"]
    assert result["entries"] == load.make_data(case, 0)[0].nnz > 500
    assert 0 < result["nonzero_weights"] <= 40
    assert result["epsilon"] <= 1.0


def test_more_memory_than_promised_fails(monkeypatch):
    monkeypatch.setattr(load, "BASE_MIB", 1.0)
    assert not load.run_case(small(), 0)["passed"]


def test_the_promise_is_dominated_by_columns_and_steps():
    for case in load.CASES.values():
        assert case.promised_mib < load.BASE_MIB * 10
        assert replace(case, n_columns=2 * case.n_columns).promised_mib > case.promised_mib


def test_the_report_fails_with_a_case(monkeypatch, capsys):
    results = {"longest": {"passed": True}, "widest": {"passed": False, "failure": "killed"}}
    monkeypatch.setattr(load, "in_process", lambda name, seed: results[name])
    assert load.main(["--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["passed"]
    assert report["cases"]["widest"]["failure"] == "killed"
    assert load.main(["--case", "longest"]) == 0
    assert "passed" in capsys.readouterr().out
