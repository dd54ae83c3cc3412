"""Rows of some columns that have their unit length in all: what they pull, and where they start."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.gradient_descent.gradient_rows import build_gradient_rows
from dplasso.gradient_descent.margins import LinearModel
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import targets_of
from dplasso.matrix.scaling import Scaling
from dplasso.matrix.starting import StartingModel
from dplasso.runtime.threads import ONE_THREAD
from gradient_descent.cases import records

PRIOR = StartingModel(np.linspace(-2.0, 2.0, 30)[:, np.newaxis], np.zeros(1))


def short_rows(length):
    """Return records in 3 of 30 columns, in which some rows are empty, and how they are scaled."""
    X, y = records(60, 30)
    X = np.array(X)
    X[:5, :3] = 0.0
    X[5, 0] = 1e9
    X[6, 0], X[6, 3:] = 1e-300, 0.0
    known = targets_of(y), ONE_THREAD, np.arange(3)
    rows = build_gradient_rows(sp.csr_array(X), Logistic(0.5), *known, prior=PRIOR)
    return rows, Scaling(np.zeros(0, dtype=np.int64), 0.1, None, length=length)


@pytest.mark.parametrize("length", [0.05, 0.3, 1.0])
def test_rows_that_are_divided_pull_no_further_than_unit_rows(length):
    (rows, scaling), unit = short_rows(length), 2.0**33
    for i in range(60):
        alone = replace(rows, targets=targets_of(rows.targets.labels, np.eye(60)[i]))
        pulled = alone.part(scaling, unit, PRIOR).whole(np.zeros(4))
        assert np.linalg.norm(pulled / unit) <= 0.5
    assert rows.part(scaling, unit, PRIOR).whole(np.zeros(4)).any()


def test_margins_start_at_the_same_place_whatever_rows_are_divided_by():
    margins = []
    for length in (1.0, 0.3):
        rows, scaling = short_rows(length)
        model = LinearModel(np.full((3, 1), 2.0 * length), np.array([0.1]), scaling)
        margins.append(rows.margins(model, PRIOR).parts)
    assert margins[0] == pytest.approx(margins[1], rel=1e-12)
