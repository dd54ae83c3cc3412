"""Runs in rounds: exact sums of exact residuals, the same from every thread and part."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dplasso import DataError
from dplasso.frank_wolfe import round_part
from dplasso.frank_wolfe.round_part import RoundRows, RoundSteps
from dplasso.frank_wolfe.rounds import LARGEST_ROUND, ROUNDS, RoundsFrankWolfe, round_end
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.losses.logistic import Logistic
from dplasso.losses.loss import residual_vector
from dplasso.losses.multinomial import ClippedMultinomial
from dplasso.losses.squared import Squared
from dplasso.losses.targets import targets_of
from dplasso.privacy.exponential_mechanism import SelectionRule
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import thread_pool
from dplasso.selection.registry import make_selector
from frank_wolfe.cases import add_changes, build, dense_rows, some_labels
from frank_wolfe.reference import clipped, column_gradients
from selection.invariants import check

STEPS, COLUMNS, ROWS = 2 * ROUNDS + 3, 40, 60
ENDS = [*range(2, STEPS, 2), STEPS]
LOSSES = {
    "two classes": (Logistic(0.5, 0.3, 0.5, 1.0), 2),
    "three classes": (ClippedMultinomial(0.5, np.array([0.1, -0.4, 0.3])), 3),
    "numbers": (Squared(0.25, 0.1), 0),
}
seeds = st.integers(0, 10**6)


def case(loss="two classes", seed=0, *, bound=1.0, equal=False, n_columns=COLUMNS):
    """Return rows, targets and the public numbers of a run."""
    loss, n_classes = LOSSES[loss]
    X = dense_rows(ROWS, n_columns, seed)
    X = np.where(X != 0, 0.75, X) if equal else X
    rng = np.random.default_rng([seed, 1])
    labels = rng.integers(0, n_classes, ROWS) if n_classes else rng.uniform(-1, 1, ROWS)
    return X, labels, RoundSteps(loss, bound, n_columns, STEPS, 0.3, 32)


def design_of(X, bound):
    return build(X, np.zeros(len(X)), 1, bound=bound, intercept=False).design


def rows_of(X, labels, steps, **options):
    targets = targets_of(np.asarray(labels, dtype=np.float64))
    return RoundRows(steps, design_of(X, steps.bound), targets, **options)


def vertices(steps, seed):
    """Return different vertices that have nothing to do with the data."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(steps.n_coordinates)[: steps.n_steps]
    return drawn, rng.choice(np.array([-1, 1], dtype=np.int8), drawn.size)


def rounds(taken):
    return [tuple(one[a:b] for one in taken) for a, b in pairwise([0, *ENDS])]


def gradients(X, labels, steps, taken):
    """Return residuals and column gradients after some vertices, from their definition."""
    n_outputs = steps.loss.n_outputs
    margins = [[0] * n_outputs for _ in X]
    for j, sign in zip(*taken, strict=True):
        output, column = divmod(int(j), steps.n_columns)
        for margin, row in zip(margins, X, strict=True):
            entry = clipped(row[column], steps.bound)
            margin[output] += int(sign) * round(entry * 2.0**40 / steps.bound)
    residuals = np.empty((len(X), n_outputs))
    scale = 0.3 / (2.0**40 / steps.bound)
    for margin, label, found in zip(margins, labels, residuals, strict=True):
        residual_vector(steps.loss, np.array(margin) * scale, label, found)
    options = {"intercept": False, "residual_bound": steps.loss.residual_bound}
    return residuals, np.concatenate(
        [column_gradients(X, one, steps.bound, **options) for one in residuals.T]
    )


@given(st.integers(1, 300), st.integers(1, 300))
def test_the_ends_of_rounds_are_public(n_steps, step):
    step = min(step, n_steps)
    size = min(LARGEST_ROUND, max(1, n_steps // ROUNDS))
    ends = [t for t in range(1, n_steps) if t % size == 0]
    assert round_end(n_steps, step) == next(t for t in [*ends, n_steps] if t >= step)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_threads", [1, 3])
@settings(max_examples=4)
@given(seeds, st.sampled_from([0.3, 1.7]), st.booleans(), st.booleans(), st.booleans())
def test_gradients_are_those_of_the_definition(loss, n_threads, seed, bound, equal, dense, anew):
    X, labels, steps = case(loss, seed, bound=bound, equal=equal)
    taken = vertices(steps, seed)
    with thread_pool(n_threads) as threads, pytest.MonkeyPatch.context() as patch:
        patch.setattr(round_part, "_LISTED", 10**6 if dense else 1)
        patch.setattr(round_part, "RECOMPUTED_PART", -1.0 if anew else np.inf)
        rows = rows_of(X, labels, steps, threads=threads, alone=True)
        alpha = rows.start().copy()
        for done, some in zip(ENDS, rounds(taken), strict=True):
            changes = rows.move(*some)
            # A round of columns without entries that matter changes nothing, and lists that.
            assert add_changes(alpha, changes) or not dense or not changes.amounts.size
            assert changes.whole == anew
            residuals, expected = gradients(X, labels, steps, [one[:done] for one in taken])
            assert np.abs(residuals).max() <= steps.loss.residual_bound
            assert alpha.tolist() == expected.tolist()


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("where", ["columns", "rows"])
@pytest.mark.parametrize("index", [-1, 10**6])
def test_numbers_outside_the_matrix_are_refused(where, index, n_threads):
    X, labels, steps = case()
    design = design_of(np.ones_like(X), 1.0)
    indices = getattr(design, where).indices.copy()
    indices[3] = index
    design = design._replace(**{where: getattr(design, where)._replace(indices=indices)})

    def read(threads):
        rows = RoundRows(steps, design, targets_of(labels.astype(np.float64)), threads)
        rows.start()
        rows.move(np.array([0]), np.array([1], dtype=np.int8))

    with thread_pool(n_threads) as threads, pytest.raises(DataError, match="the store is damaged"):
        read(threads)


def selector_of(steps, name="bucket", exponent=3e-10):
    kind = "none" if np.isinf(exponent) else "exponential"
    return make_selector(name, steps.n_coordinates, SelectionRule(kind, exponent, 0.0))


def run_of(steps, rows, selector, stream=None, prefix=None):
    return RoundsFrankWolfe(steps, rows, selector, stream or random_stream(0), prefix)


def drawn(data, selector=None, **options):
    X, labels, steps = data
    run = run_of(steps, rows_of(X, labels, steps), selector or selector_of(steps), **options)
    run.advance(1, 6)
    run.advance(7, STEPS)
    return run.transcript()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_steepest_columns_left_are_taken_round_by_round(loss):
    X, labels, steps = data = case(loss, 4)
    found, expected = drawn(data, selector_of(steps, "argmax", np.inf)), []
    for first, last in pairwise([0, *ENDS]):
        taken = (
            Transcript(*(np.array([one[k] for one in expected]) for k in (0, 1)))
            if first
            else Transcript(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int8))
        )
        _, alpha = gradients(X, labels, steps, (taken.vertex, taken.sign))
        alpha[taken.vertex] = 0
        for _ in range(last - first):
            j = int(np.argmax(np.abs(alpha)))
            expected.append((j, -1 if alpha[j] > 0 else 1))
            alpha[j] = 0
    assert list(zip(found.vertex.tolist(), found.sign.tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", ["bucket", "big-little", "noisy-max"])
@pytest.mark.parametrize("n_columns", [COLUMNS, 2000])
@pytest.mark.parametrize("way", [("RECOMPUTED_PART", -1.0), ("_LISTED", 1), ("_LISTED", 10**6)])
def test_draws_do_not_depend_on_how_changes_are_told(n_columns, name, way, monkeypatch):
    data = X, labels, steps = case(seed=9, n_columns=n_columns)
    monkeypatch.setattr(round_part, *way)
    run = run_of(steps, rows_of(X, labels, steps, alone=True), selector_of(steps, name))
    run.advance(1, STEPS)
    assert run.transcript() == drawn(data, selector_of(steps, name))
    assert np.unique(run.transcript().vertex).size == STEPS


@pytest.mark.parametrize("count", [0, 1, 9, 11, STEPS])
def test_what_a_prefix_holds_is_taken_and_the_rest_is_drawn_as_before(count):
    data = case("three classes", 6)
    whole = drawn(data)
    first = Transcript(whole.vertex[:count], whole.sign[:count])
    assert drawn(data, prefix=first) == whole
    foreign = Transcript(*(one[:count] for one in vertices(data[2], 8)))
    found = drawn(data, prefix=foreign)
    assert found.vertex[:count].tolist() == foreign.vertex.tolist()
    assert np.unique(found.vertex).size == STEPS


@pytest.mark.parametrize("n_columns", [COLUMNS, 2000])
@pytest.mark.parametrize("exponent", [3e-10, 1e-6, np.inf])
def test_the_selector_fits_the_gradients_at_every_draw(n_columns, exponent):
    """With few columns all of them are indexed anew, with many it hears of the changes."""
    X, labels, steps = case(seed=7, n_columns=n_columns)
    selector = selector_of(steps, exponent=exponent)
    run = run_of(steps, rows_of(X, labels, steps), selector)
    for step in range(1, STEPS + 1):
        run.advance(step, step)
        check(selector, run._alpha)


def rare_case(loss, seed=0, *, equal=False):
    """Return rows of which most columns hold a few entries: a round leaves those out."""
    _, labels, steps = case(loss, seed, n_columns=300)
    X = dense_rows(ROWS, 300, seed, density=0.04)
    X[:, :12] = dense_rows(ROWS, 12, seed + 1, density=0.6)
    return np.where(X != 0, 0.75, X) if equal else X, labels, steps


@pytest.mark.parametrize("part", [-1.0, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_computed_when_they_are_drawn_draw_the_same(loss, part, monkeypatch):
    monkeypatch.setattr(round_part, "_LONG_PART", part)
    rare = 0
    for seed in range(3):
        X, labels, steps = data = rare_case(loss, seed, equal=seed == 1)
        # Levels of four records' shares; and the last weights are those of a race.
        for exponent in (3e-11, 1e-8):
            selector = selector_of(steps, exponent=exponent)
            with thread_pool(1 + seed % 2) as threads:
                rows = rows_of(X, labels, steps, alone=True, threads=threads)
                run = run_of(steps, rows, selector)
                run.advance(1, STEPS)
            assert run.transcript() == drawn(data, selector_of(steps, exponent=exponent))
            left_out = exponent == 3e-11
            assert (rows._long is not None) == left_out
            if left_out:
                columns = run.transcript().vertex % steps.n_columns
                rare += (~rows._long.is_long[columns]).sum()
    assert rare > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_gradient_that_is_left_out_is_within_its_level_and_exact_when_read(loss):
    X, labels, steps = rare_case(loss, 4)
    rows = rows_of(X, labels, steps, alone=True)
    alpha, taken = rows.start(34), vertices(steps, 4)
    # Three records' shares are less than four, whatever the residuals are.
    assert rows._long.is_long.tolist() == ((X != 0).sum(axis=0) >= 4).tolist()
    for done, some in zip(ENDS, rounds(taken), strict=True):
        changes = rows.move(*some)
        alpha[changes.coordinates] = alpha[changes.coordinates] * (not changes.whole)
        np.add.at(alpha, changes.coordinates, changes.amounts)
        _, expected = gradients(X, labels, steps, [one[:done] for one in taken])
        known = [rows.gradient(k) for k in range(steps.n_coordinates)]
        assert sum(one is None for one in known) < steps.n_coordinates // 4
        for stored, exact, found in zip(alpha, expected, known, strict=True):
            assert exact == (stored if found is None else found)
            assert found is None or (stored == 0 and -(2**34) <= exact < 2**34)


def test_a_rare_column_outside_the_matrix_is_refused():
    X, labels, steps = rare_case("two classes")
    rows = rows_of(X, labels, steps, alone=True)
    rows.start(34)
    rare = int(np.flatnonzero(~rows._long.is_long & (X != 0).any(axis=0))[0])
    columns = rows._design.columns
    columns.indices[columns.indptr[rare]] = ROWS
    with pytest.raises(DataError, match="the store is damaged"):
        rows.gradient(rare)


def compare(observed, expected):
    """Compare counts with what is expected of them, rare ones together."""
    common = expected > 5
    told = [np.append(counts[common], counts[~common].sum()) for counts in (observed, expected)]
    kept = told[1] > 0
    assert chisquare(told[0][kept], told[1][kept], sum_check=False).pvalue > 1e-6


def test_draws_are_from_the_exponential_mechanism_over_the_rest():
    """The second of two draws, by its probability given the first: 2,000 runs, false alarm 1e-6.

    Drawing the first one's column again, or by its gradient before the step, fails at once.
    """
    X, y = dense_rows(40, 6, 0), some_labels(40, 0)
    runs, scale = 2000, 0.35
    steps = RoundSteps(Logistic(1.0, 0.4), 1.0, 6, 2, 1.0, 32)
    alpha = rows_of(X, y, steps).start() * scale / 2**32
    first, second = np.zeros(12), {}
    stream = random_stream(1)
    for _ in range(runs):
        selector = selector_of(steps, exponent=scale / 2**32)
        run = run_of(steps, rows_of(X, y, steps), selector, stream)
        run.advance(1, 2)
        drawn = run.transcript()
        key = int(drawn.vertex[0]), int(drawn.sign[0])
        first[2 * key[0] + (key[1] > 0)] += 1
        second.setdefault(key, np.zeros(12))
        second[key][2 * int(drawn.vertex[1]) + (int(drawn.sign[1]) > 0)] += 1

    def probabilities(alpha, without=None):
        weights = np.exp(np.column_stack([alpha, -alpha])).ravel()
        if without is not None:
            weights[2 * without : 2 * without + 2] = 0.0
        return weights / weights.sum()

    compare(first, runs * probabilities(alpha))
    key = max(second, key=lambda one: second[one].sum())
    # The gradients after that step, from the definition.
    margin = 0.4 + key[1] * np.clip(X[:, key[0]], -1, 1)
    q = 1 / (1 + np.exp(-margin)) - y
    after = scale * (q @ np.clip(X, -1, 1))
    assert second[key][2 * key[0] : 2 * key[0] + 2].sum() == 0
    compare(second[key], second[key].sum() * probabilities(after, key[0]))
