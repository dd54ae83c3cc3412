import numpy as np
import pytest

import dplasso
from cli.conftest import done
from dplasso.data.formats import read_data


@pytest.fixture
def expected(model, held_out):
    """Give the model and the rows that it is applied to."""
    data = read_data(held_out)
    data.X.data[:] = 1
    return dplasso.load(model), data.X


def test_one_label_per_row(model, held_out, expected):
    fitted, X = expected
    labels = [str(int(label)) for label in fitted.predict(X)]
    assert done("predict", model, held_out, "--binarize").stdout.split("\n") == [*labels, ""]
    assert (len(labels), len(set(labels))) == (300, 2)


def test_probabilities_to_a_file(model, held_out, expected, tmp_path):
    fitted, X = expected
    out = tmp_path / "probabilities.txt"
    result = done("predict", model, held_out, "--binarize", "--proba", "--out", out)
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == [out]
    heading, *lines = out.read_text().split()
    assert heading == "1"
    written = np.array(lines, dtype=float)
    np.testing.assert_allclose(written, fitted.predict_proba(X)[:, 1], atol=1e-8)


def test_columns_are_widened_and_may_count_from_zero(model, tmp_path):
    one_based, zero_based = tmp_path / "one.svm", tmp_path / "zero.svm"
    one_based.write_text("+1 1:1 5:1\n-1 2:1 9:1\n")
    zero_based.write_text("+1 0:1 4:1\n-1 1:1 8:1\n")
    assert done("predict", model, one_based).stdout == "1\n-1\n"
    first = done("predict", model, one_based, "--proba")
    assert first.stdout == done("predict", model, zero_based, "--proba", "--zero-based").stdout
