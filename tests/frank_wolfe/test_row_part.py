"""Rows in parts: any partition takes the steps that one process takes, bit for bit."""

import numpy as np
import pytest

from dplasso.frank_wolfe.large_step import index
from dplasso.frank_wolfe.row_part import row_parts
from dplasso.frank_wolfe.solve import solve
from dplasso.privacy.randomness import random_stream
from dplasso.selection.contract import rebuild, select
from frank_wolfe.cases import argmax, renumbered, small_problem


def run_in_parts(problem, n_parts, drift_tol):
    """Coordinate the parts as one machine of several would; return what was drawn and alpha."""
    parts = row_parts(problem, n_parts, drift_tol=drift_tol)
    alpha = sum(part.start() for part in parts)
    selector, stream = argmax()._replace(numbering=problem.design.numbering), random_stream(0)
    index(selector, alpha)
    drawn = []
    for step in range(1, problem.n_steps + 1):
        rebuild(selector, alpha)
        j, s = select(selector, alpha, stream)
        drawn.append((int(j), int(s)))
        for part in parts:
            places, changes = part.move(step, int(j), int(s))
            assert (np.diff(places) > 0).all()
            assert changes.all()
            alpha[places] += changes
    return drawn, alpha


@pytest.mark.parametrize("drift_tol", [0.0, 0.01, None])
@pytest.mark.parametrize("lay", [lambda problem: problem, renumbered])
@pytest.mark.parametrize("seed", [0, 1])
def test_any_partition_agrees_with_the_fused_loop(seed, lay, drift_tol):
    _, _, problem = small_problem(seed, n_steps=40, n_rows=23)
    problem = lay(problem)
    selector = argmax()._replace(numbering=problem.design.numbering)
    whole = solve(problem, selector, random_stream(0), drift_tol=drift_tol)
    expected = list(
        zip(whole.transcript().vertex.tolist(), whole.transcript().sign.tolist(), strict=True)
    )
    for n_parts in (1, 2, 5):
        drawn, alpha = run_in_parts(problem, n_parts, drift_tol)
        assert drawn == expected
        np.testing.assert_array_equal(alpha, whole.state.alpha)
