"""The load command: a small case runs through, and a broken promise is told."""

from dataclasses import replace

from evidence.assurance import load


def small(**changes):
    return replace(load.CASES["longest"], n_rows=50, n_columns=300, n_iter=40, **changes)


def test_a_case_is_run_and_measured(monkeypatch):
    # This process has done more than a fit.
    monkeypatch.setattr(load, "BASE_MIB", 2.0**16)
    case = small()
    result = load.run_case(case, 0)
    assert result["passed"]
    assert result["entries"] == load.make_data(case, 0)[0].nnz > 500
    assert 0 < result["nonzero_weights"] <= 40
    assert result["epsilon"] <= 1.0
    assert set(load.split()) == set(load.CASES)
    assert f"peak {result['peak_mib']:,} MiB" in load.section([result])[0]


def test_more_memory_than_promised_fails(monkeypatch):
    monkeypatch.setattr(load, "BASE_MIB", 1.0)
    assert not load.run_case(small(), 0)["passed"]
