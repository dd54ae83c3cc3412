"""``--infer``: intervals with sampling error, from the fit to the model file and ``show``."""

import numpy as np
import pytest
import scipy.sparse as sp

import dplasso
from cli.conftest import done, found, refused, run_command

INFER = ("--infer", "all", "--row-norm", 2, "--epsilon", 3, "--classes", "0,1")


@pytest.fixture
def table(tmp_path):
    """Give rows of three columns, of which the first tells the label."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3_000, 3))
    y = (rng.random(3_000) < 1.0 / (1.0 + np.exp(-1.5 * X[:, 0]))).astype(int)
    path = tmp_path / "rows.npz"
    sp.save_npz(path, sp.csr_array(X))
    np.save(tmp_path / "labels.npy", y)
    return path, "--labels", tmp_path / "labels.npy"


def test_the_table_is_printed_kept_and_shown_again(table, tmp_path):
    out = tmp_path / "model.npz"
    printed = done("fit", *table, *INFER, "--model", out).stdout
    estimates = dplasso.load(out).inference_
    summary = estimates.summary()
    assert summary in printed
    assert summary in done("show", out).stdout
    assert estimates.low[0] > 0.5
    shown = found("show", out)
    assert shown["inference"] == estimates.rows()
    assert shown["params"]["infer"] == "all"
    named = ("--infer", "x2,x0", *INFER[2:])
    report = found("fit", *table, *named)
    assert [row["name"] for row in report["inference"]] == ["x0", "x2"]
    wrong = run_command("fit", *table, "--infer", "dose", *INFER[2:])
    refused(wrong, "--infer names the column 'dose', which the data do not have; name some of 'x0'")
    report = found("fit", *table, *INFER, "--features", 3, "--infer-share", 0.3)
    (stated,) = [one for one in report["privacy"]["releases"] if one["name"] == "inference"]
    assert stated["numbers"]["share"] == 0.3
    assert report["reference_categories"] == []
    assert [row["name"] for row in report["inference"]] == ["x0", "x1", "x2", "(intercept)"]
    assert "inference" not in report["not_for_release"]
