"""Where noise alone could have picked a weight, and where not."""

from math import comb

import numpy as np
import pandas as pd
import pytest

from dplasso.model.weights import Weights, steps_beyond_chance


def reference(n_steps, n_vertices):
    """Sum the binomial terms, count by count."""
    p = 1 / n_vertices
    terms = [comb(n_steps, k) * p**k * (1 - p) ** (n_steps - k) for k in range(n_steps + 1)]
    for count in range(1, n_steps + 1):
        if n_vertices * sum(terms[count:]) <= 0.05:
            return count
    return n_steps + 1


@pytest.mark.parametrize("n_steps", [1, 2, 10, 100, 400])
@pytest.mark.parametrize("n_vertices", [2, 6, 80, 10**4, 10**9])
def test_it_is_the_union_bound(n_steps, n_vertices):
    assert steps_beyond_chance(n_steps, n_vertices) == reference(n_steps, n_vertices)


def test_uniform_draws_are_rarely_called_clear():
    """Of 2,000 runs 5 % may be: more than 120 of them have a chance of 2 % at exactly 5 %."""
    rng = np.random.default_rng(0)
    runs = [np.bincount(rng.integers(0, 80, 60), minlength=80).max() for _ in range(2_000)]
    clear = steps_beyond_chance(60, 80)
    assert (np.array(runs) >= clear).sum() <= 120
    # One less would be too few: the mark is not merely shy.
    assert (np.array(runs) >= clear - 1).sum() > 120


def test_a_model_without_weights_is_an_empty_table():
    nothing = Weights(np.zeros(0, dtype=np.int64), np.zeros(0))
    assert nothing.to_pandas().empty
    assert (len(nothing), nothing.rows(), repr(nothing)) == (0, [], "(no column has a weight)")


def test_a_data_frame_of_weights_names_its_columns():
    table = Weights(np.array([3, 1]), np.array([0.5, -2.0]), np.array(["a", "b"], dtype=object))
    assert list(table) == [("a", 0.5), ("b", -2.0)]
    frame = pd.DataFrame(table.top(5))
    assert frame.to_dict("list") == {"name": ["b", "a"], "weight": [-2.0, 0.5]}
