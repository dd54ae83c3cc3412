"""Every structure, driven by the same transcript through Algorithm 2, sees the same gradients."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

from dplasso.frank_wolfe.transcript import Transcript
from dplasso.selection.contract import rebuild, register, select, update
from frank_wolfe.cases import (
    empty_outputs,
    forced,
    last,
    random_transcript,
    small_problem,
    watch,
)
from selection.invariants import check
from selection.test_direction import STRUCTURES


class Driven(NamedTuple):
    """A structure that is kept up to date and asked, but whose answers are not followed."""

    structure: Any
    transcript: Any


@njit
def select_driven(selector, alpha, stream):
    select(selector.structure, alpha, stream)
    return select(selector.transcript, alpha, stream)


@njit
def update_driven(selector, alpha, k, old, new):
    update(selector.structure, alpha, k, old, new)


@njit
def rebuild_driven(selector, alpha):
    rebuild(selector.structure, alpha)


register(Driven, select_driven, update_driven, rebuild_driven)


@pytest.mark.parametrize("name", STRUCTURES)
def test_gradients_do_not_depend_on_the_structure(name):
    _, _, problem = small_problem(1, n_steps=40)
    transcript = random_transcript(problem, 2)
    plain = last(watch(problem, forced(transcript), 0.01))
    n_coordinates = problem.n_columns + 1
    selector = Driven(STRUCTURES[name](n_coordinates), forced(transcript))
    for _, state in watch(problem, selector, 0.01):
        check(selector.structure, state.alpha)
    np.testing.assert_array_equal(state.alpha, plain.alpha)
    np.testing.assert_array_equal(state.margin, plain.margin)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_run_can_be_replayed_bit_for_bit(name):
    _, _, problem = small_problem(3, n_steps=40)
    outputs = empty_outputs(problem)
    own = last(watch(problem, STRUCTURES[name](problem.n_columns + 1), 0.01, outputs=outputs))
    again = last(watch(problem, forced(Transcript(outputs[0], outputs[1])), 0.01))
    np.testing.assert_array_equal(own.alpha, again.alpha)
