import pytest

import dplasso
from cli.conftest import found


def test_the_whole_job_on_the_real_data(tmp_path):
    directory = tmp_path / "new" / "demo"
    report = found("demo", "--out", directory, "--epsilon", "2")
    assert (report["n_samples"], report["n_test"], report["n_features"]) == (32560, 16281, 193681)
    for name in ("lasso", "logistic", "plain"):
        assert set(report[name]) == {"auc", "accuracy", "n_nonzero", "seconds"}
        assert 0.85 < report[name]["auc"] < 0.93
        assert 0.5 < report[name]["accuracy"] < 0.87
    # What nothing hides predicts best.
    assert report["plain"]["auc"] > max(report[name]["auc"] for name in ("lasso", "logistic"))
    assert report["majority_accuracy"] == pytest.approx(0.7638, abs=1e-4)
    for name in ("lasso", "logistic"):
        assert report["privacy"][name]["is_private"] is True
        assert 1.98 < report["privacy"][name]["epsilon"] <= 2

    assert sorted(path.name for path in directory.iterdir()) == [
        *("lasso.npz", "logistic.npz"),
    ]
    for name in ("lasso", "logistic"):
        model = dplasso.load(directory / f"{name}.npz")
        for feature in report["heaviest"][name]:
            assert model.coef_[0, feature["column"]] == feature["weight"]
            assert feature["name"]
            assert feature["z"] == pytest.approx(feature["weight"] / feature["standard_error"])
        assert model.privacy_.to_dict() == report["privacy"][name]
