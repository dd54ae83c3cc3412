"""What every structure owes its solvers: the law of its draws, and updates that keep it."""

import numpy as np
import pytest
from evidence.reference.draws import (
    ALARM,
    change,
    count_vertices,
    draw,
    fill,
    p_value,
    vertex_probabilities,
)
from evidence.reference.gradients import EXPONENT, HARD, LIMIT, PRIVATE, SHARE, random_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso.frank_wolfe.state import start_sparse
from dplasso.runtime.threads import ONE_THREAD
from dplasso.selection.big_little import big_little_state
from dplasso.selection.bucket import bucket_state
from dplasso.selection.fibonacci_heap import heap_state
from dplasso.selection.noisy_max import ArgmaxState, LaplaceState
from dplasso.selection.selector import new_counters, rebuild, select, update_many
from frank_wolfe.cases import argmax, forced, random_transcript, small_problem, watch
from selection.invariants import IMPLIED, check, first_largest, implied, total_variation

# Weights of the magnitude alone, then the true sign.
PAPER = {
    "bucket, paper": lambda n, exponent: bucket_state(n, exponent, False),
    "big-little, paper": lambda n, exponent: big_little_state(n, exponent, False),
}
EXACT = {
    "argmax": lambda n, exponent: ArgmaxState(new_counters()),
    "heap": lambda n, exponent: heap_state(n),
    "bucket, no privacy": lambda n, exponent: bucket_state(n, np.inf, True),
}
LAPLACE = {"noisy-max, paper": lambda n, exponent: LaplaceState(1 / exponent, new_counters())}
WEIGHTED = PRIVATE | PAPER
STRUCTURES = WEIGHTED | EXACT | LAPLACE
# At a thousand nats a share the steepest vertex wins.
STEEP = 1000.0 / SHARE


def magnitudes(shift):
    """Near zero, near the edges of levels 2^shift wide, near the limit, anywhere."""
    edges = st.builds(
        lambda level, offset: min(LIMIT, max(0, level * 2**shift + offset)),
        st.integers(0, 2**14),
        st.integers(-2, 2),
    )
    near_limit = st.integers(LIMIT - 3, LIMIT)
    return st.one_of(st.integers(0, 3), st.integers(0, 4 * SHARE), edges, near_limit) | st.integers(
        0, LIMIT
    )


def gradients(shift):
    return st.builds(lambda m, s: s * m, magnitudes(shift), st.sampled_from([-1, 1]))


def histories(shift, most_columns=12):
    """(gradients at the start, changes [(coordinate, new gradient), ...])."""

    def changes(start):
        column = st.integers(0, len(start) - 1)
        change = st.tuples(column, gradients(shift))
        return st.tuples(st.just(start), st.lists(change, max_size=25))

    return (
        st.integers(1, most_columns)
        .flatmap(lambda n: st.lists(gradients(shift), min_size=n, max_size=n))
        .flatmap(changes)
    )


def filled(make, alpha, exponent=EXPONENT):
    selector = make(alpha.size, exponent)
    fill(selector, alpha)
    return selector


def fits(selector, alpha, expected, seed, n_draws=20_000):
    """Return whether draws pass the test of their law; a right structure fails one in a million."""
    draws = draw(selector, alpha, seed, n_draws)
    return p_value(count_vertices(expected.shape[0], *draws), expected) > ALARM


@pytest.mark.parametrize("name", PRIVATE)
class TestEveryPrivateSelector:
    @pytest.mark.parametrize("n_updates", [0, 1000])
    @pytest.mark.parametrize("n_columns", [1, 17, 1000])
    def test_draws_follow_the_closed_form(self, name, n_columns, n_updates):
        alpha = random_gradients(n_columns, seed=n_columns)
        selector = filled(PRIVATE[name], alpha)
        # Half the updates are a share or so, as in training; half go anywhere.
        rng = np.random.default_rng(n_updates)
        coordinates = rng.integers(0, n_columns, n_updates)
        values = random_gradients(n_updates, seed=n_updates + 1)
        near = rng.random(n_updates) < 0.5
        values[near] = alpha[coordinates[near]] + rng.integers(-SHARE, SHARE, near.sum())
        change(selector, alpha, coordinates, values)
        check(selector, alpha)
        # Enough to see a factor of 2 in the exponent; the reference costs 2 D noises a draw.
        n_draws = min(50_000, 5_000_000 // n_columns) if name == "noisy-max" else 50_000
        assert fits(selector, alpha, vertex_probabilities(alpha, EXPONENT), 1, n_draws)


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("case", HARD)
def test_hard_gradients(name, case):
    """They are told, taken back and told again; what a rebuilt structure stores is read below."""
    target, exponent = HARD[case]
    rng = np.random.default_rng(0)
    alpha = rng.integers(-LIMIT, LIMIT, target.size)
    selector = filled(WEIGHTED[name], alpha, exponent)
    order = rng.permutation(target.size)
    change(selector, alpha, order, -target[order])
    draw(selector, alpha, 3, 1)
    change(selector, alpha, order, target[order])
    check(selector, alpha)
    expected = vertex_probabilities(alpha, exponent, signed=name not in PAPER)
    assert fits(selector, alpha, expected, 4)


# Gradients of a thousand columns beside the hard ones, for structures whose numbers can be read.
WIDE = {
    f"{nats:g} nats": (random_gradients(1000, 1, nats=nats), EXPONENT) for nats in (0.01, 3, 100)
}


@pytest.mark.parametrize("name", [name for name in WEIGHTED if name.split(",")[0] in IMPLIED])
@pytest.mark.parametrize("case", HARD | WIDE)
def test_the_stored_numbers_imply_the_closed_form(name, case):
    """In exact arithmetic, whatever is drawn."""
    alpha, exponent = (HARD | WIDE)[case]
    if name.startswith("bucket") and not (
        exponent < np.log(2.0) and np.abs(alpha).max() * exponent < 2**12
    ):
        return  # drawn by a race, which stores no numbers
    chances = implied(WEIGHTED[name](alpha.size, exponent), alpha)
    signed = name not in PAPER
    distance, worst_ratio = total_variation(chances, alpha, exponent, signed=signed)
    assert distance < 2.0**-45
    assert worst_ratio > 1 - 2.0**-40


def assert_steepest(selector, alpha):
    vertex, sign = draw(selector, alpha, 0, 2)
    best = first_largest(alpha)
    assert vertex.tolist() == [best, best]
    assert sign.tolist() == [-1 if alpha[best] >= 0 else 1] * 2


@pytest.mark.parametrize("name", EXACT)
class TestEveryArgmax:
    def test_first_of_the_largest(self, name):
        cases = [alpha for alpha, _ in HARD.values()]
        # Ties on the edge of a level.
        for edge in (2**34, 2**36, 5 * 2**40, 2**62):
            values = [-edge, edge], [edge, -edge], [0, edge, -edge, edge - 1, -edge]
            cases += [np.array(some, dtype=np.int64) for some in values]
        for alpha in cases:
            assert_steepest(filled(EXACT[name], alpha), alpha)

    @pytest.mark.parametrize("n_columns", [3, 1000])
    @pytest.mark.parametrize("spread", [2, LIMIT])
    def test_after_every_few_updates(self, name, n_columns, spread):
        rng = np.random.default_rng(n_columns)
        alpha = rng.integers(-spread, spread, n_columns)
        selector = filled(EXACT[name], alpha)
        for _ in range(40):
            change(selector, alpha, rng.integers(0, n_columns, 5), rng.integers(-spread, spread, 5))
            # Shrink the best, so that stale bounds come to the top.
            best = np.array([first_largest(alpha)])
            change(selector, alpha, best, alpha[best] // 2)
            assert_steepest(selector, alpha)


@pytest.mark.parametrize("name", STRUCTURES)
class TestEveryStructure:
    def test_changes_told_together_leave_the_same_structure(self, name):
        rng = np.random.default_rng(0)
        alphas = [rng.integers(-5 * SHARE, 5 * SHARE, 50)]
        alphas.append(alphas[0].copy())
        one, other = (filled(STRUCTURES[name], alpha, STEEP) for alpha in alphas)
        for _ in range(50):
            coordinates = rng.permutation(50)[:10]
            values = alphas[0][coordinates] + rng.integers(-SHARE, SHARE, 10)
            change(one, alphas[0], coordinates, values)
            change(other, alphas[1], coordinates, values, together=10)
            check(one, alphas[0])
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)

    def test_a_seed_repeats_the_draws_and_gradients_stay(self, name):
        alpha = random_gradients(17, seed=9)
        before = alpha.copy()
        runs = [draw(filled(STRUCTURES[name], alpha), alpha, 9, 100) for _ in range(2)]
        np.testing.assert_array_equal(*runs)
        np.testing.assert_array_equal(alpha, before)

    def test_follows_a_forced_transcript(self, name):
        """The same vertices give the same gradients, whichever structure follows them."""
        _, _, problem = small_problem(1, n_steps=40)
        alpha = start_sparse(problem, 0.0, ONE_THREAD).alpha
        selector, reference = filled(STRUCTURES[name], alpha, STEEP), argmax()
        for _, state in watch(problem, forced(random_transcript(problem, 2)), 0.01):
            changed = np.flatnonzero(alpha != state.alpha)
            change(selector, alpha, changed, state.alpha[changed])
            check(selector, alpha)
            vertex, _ = draw(selector, alpha, 1, 3)
            # The steepest wins unless another is within a few hundredths.
            best = draw(reference, alpha, 1, 1)[0][0]
            assert (np.abs(alpha[vertex]) > np.abs(alpha[best]) - 2**28).all()
        np.testing.assert_array_equal(alpha, state.alpha)


@pytest.mark.parametrize(
    ("name", "exponent", "shift"),
    [
        *(("bucket", exponent, shift) for exponent, shift in ((EXPONENT, 38), (1e-3, 9))),
        *(("big-little", exponent, 38) for exponent in (EXPONENT, 1e-17, 1e-3)),
        *((exact, np.nan, 34) for exact in ("heap", "bucket, no privacy")),
    ],
)
@given(data=st.data())
@settings(deadline=None, max_examples=80)
def test_any_integers_leave_it_consistent(name, exponent, shift, data):
    """Changes near zero, near the edges of levels 2^shift wide, near the limit, anywhere."""
    start, changes = data.draw(histories(shift))
    alpha = np.array(start, dtype=np.int64)
    selector = filled(STRUCTURES[name], alpha, exponent)
    check(selector, alpha)
    for step, (k, value) in enumerate(changes):
        change(selector, alpha, np.array([k]), np.array([value]))
        check(selector, alpha)
        if step % 2 == 0:
            vertex, _ = draw(selector, alpha, 0, 1)
            assert name not in EXACT or vertex[0] == first_largest(alpha)
            check(selector, alpha)


@pytest.mark.parametrize(
    ("name", "exponents", "demanded"),
    [
        ("bucket", (0.0, -1.0, np.nan), "positive"),
        ("big-little", (0.0, -1.0, np.nan, np.inf), "finite and positive"),
    ],
)
def test_refuses_a_senseless_exponent(name, exponents, demanded):
    for exponent in exponents:
        with pytest.raises(ValueError, match=f"exponent must be {demanded}"):
            STRUCTURES[name](10, exponent)


def test_a_class_that_was_not_registered_is_named():
    for function, n_arguments in ((select, 3), (update_many, 5), (rebuild, 2)):
        with pytest.raises(TypeError, match=f"no kernel '{function.__name__}' .* for NoneType"):
            function(*[None] * n_arguments)
