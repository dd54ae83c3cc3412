"""The invariant that carries the privacy proof, by brute force on neighbouring data sets.

Two data sets that differ in one record take the same (forced) transcript. Every other record's
gradient, margin and due date must agree to the bit; the column gradients may differ by one record's
contribution; the log-probabilities of the vertices may move by eps0.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from dplasso.frank_wolfe.large_step import large_rows
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import NO_WEIGHTS
from dplasso.privacy.mechanisms import build_mechanism
from frank_wolfe.cases import (
    WAYS,
    build,
    dense_rows,
    distinct_transcript,
    forced,
    large_steps,
    random_transcript,
    some_labels,
    true_gradient,
    watch,
    watch_standard,
    with_design,
)

N_ROWS, N_COLUMNS, N_STEPS = 24, 14, 20
BOUND = 1.5
CONTRIBUTION = 2**32
# Column 12 has no other entry, column 13 none at all; column 0 is in half of the rows.
OWNED = 12


def other_rows():
    X = dense_rows(N_ROWS, N_COLUMNS, 0, spread=1.2).astype(np.float64)
    X[:, OWNED:] = 0.0
    X[:, 0] = np.where(np.arange(N_ROWS) < N_ROWS // 2, 1.0, 0.0)
    X[20] = 0.0
    return X, some_labels(N_ROWS, 0)


def hostile_rows():
    """Return records an adversary might add, each of N_COLUMNS entries."""
    rng = np.random.default_rng(1)
    zero = np.zeros(N_COLUMNS)
    owner = zero.copy()
    owner[OWNED] = 0.7
    lone = zero.copy()
    lone[0] = 1.0
    return {
        "ordinary": other_rows()[0][5],
        "huge": np.where(rng.random(N_COLUMNS) < 0.5, 1e30, -1e300),
        "full": np.full(N_COLUMNS, BOUND),
        "signs": BOUND * np.where(np.arange(N_COLUMNS) % 2, 1.0, -1.0),
        "tiny": np.where(np.arange(N_COLUMNS) % 2, 5e-324, -1e-310),
        "negative zeros": -zero,
        "empty": zero,
        "owner": owner,
        "lone": lone,
    }


def with_record(entries, label, place):
    """Insert a record among the others; return the rows, labels and the others' positions."""
    X, y = other_rows()
    return (
        np.insert(X, place, entries, axis=0),
        np.insert(y, place, label),
        np.delete(np.arange(N_ROWS + 1), place),
    )


class BrokenInvariantError(AssertionError):
    """A difference between neighbours that one record does not explain."""


def demand(condition, what):
    if not condition:
        raise BrokenInvariantError(what)


def compare(one, other, units, run, n_steps=N_STEPS, **public):
    """Run two data sets (rows, labels, shared positions) and compare them at every step."""
    public = {"radius": 40.0} | public
    problems = [
        build(X, y, n_steps, bound=BOUND, weights=weights[0] if weights else NO_WEIGHTS, **public)
        for X, y, _, *weights in (one, other)
    ]
    runs = zip(run(problems[0]), run(problems[1]), strict=True)
    at_one, at_other = one[2], other[2]
    largest = 0
    for step, ((_, a), (_, b)) in enumerate(runs):
        for name in ("gradient", "margin"):
            left, right = getattr(a, name)[at_one], getattr(b, name)[at_other]
            demand(left.tobytes() == right.tobytes(), f"{name} of the others at step {step}")
        if hasattr(a, "rows"):
            due = a.rows["due"][at_one], b.rows["due"][at_other]
            demand((due[0] == due[1]).all(), f"due dates of the others at step {step}")
        # Differences of 64-bit integers, in Python's.
        moved = [abs(p - q) for p, q in zip(a.alpha.tolist(), b.alpha.tolist(), strict=True)]
        demand(max(moved) <= units, f"a gradient moved by {max(moved)} at step {step}")
        largest = max(largest, max(moved))
    return largest


def vertices(problem, seed):
    make = distinct_transcript if problem.distinct else random_transcript
    return forced(make(problem, seed))


def sparse(drift_tol, seed=0, **options):
    def run(problem):
        return watch(problem, vertices(problem, seed), drift_tol, **options)

    return run


def standard(problem):
    return watch_standard(problem, vertices(problem, 0))


RUNS = {
    "exact": sparse(0.0),
    "default": sparse(0.0025),
    "loose": sparse(0.1),
    "stale": sparse(None),
    "standard": standard,
}


@pytest.mark.parametrize("name", hostile_rows())
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
class TestSensitivity:
    @pytest.mark.parametrize("label", [0, 1])
    def test_one_record_added(self, name, run, label):
        without = (*other_rows(), np.arange(N_ROWS))
        for place in (0, 11, N_ROWS):
            compare(without, with_record(hostile_rows()[name], label, place), CONTRIBUTION, run)

    def test_one_record_replaced(self, name, run):
        entries = hostile_rows()[name]
        for label, other in ((0, "signs"), (1, "full"), (1, name)):
            replaced = with_record(hostile_rows()[other], 1 - label, 7)
            compare(with_record(entries, label, 7), replaced, 2 * CONTRIBUTION, run)


@pytest.mark.parametrize("residual_bound", [0.5, 0.8])
@pytest.mark.parametrize("late_start", [0, 6])
@pytest.mark.parametrize("run", ["exact", "default", "standard"])
def test_a_clipped_residual_fills_the_same_units(run, late_start, residual_bound):
    """In units of 2^32 / (B C): what a record adds is at most B C, and nearly that much."""
    public = {"residual_bound": residual_bound, "late_start": late_start}
    without = (*other_rows(), np.arange(N_ROWS))
    largest = 0
    for entries in hostile_rows().values():
        for label in (0, 1):
            more = with_record(entries, label, 11)
            reached = compare(without, more, CONTRIBUTION, RUNS[run], **public)
            largest = max(largest, reached)
            replaced = with_record(-hostile_rows()["signs"], 1 - label, 11)
            compare(more, replaced, 2 * CONTRIBUTION, RUNS[run], **public)
    assert 0.95 * CONTRIBUTION < largest <= CONTRIBUTION


# What a fit by public facts takes: margins that start at the balance of the classes, steps of one
# size, every column at most once; and classes of unequal weight.
BY_PUBLIC_FACTS = {
    "n_steps": 13,
    # Every vertex weighs one.
    "late_start": 2**20,
    "radius": 2.0**19,
    "distinct": True,
    "intercept": False,
}
LOSSES = [Logistic(0.5, 0.8), Logistic(0.5, -1.5, 0.3, 1.0), Logistic(0.75, 0.0, 1.0, 0.01)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("run", ["exact", "default", "standard"])
def test_offsets_weights_and_distinct_columns_keep_the_units(run, loss):
    public = BY_PUBLIC_FACTS | {"loss": loss}
    without = (*other_rows(), np.arange(N_ROWS))
    largest = 0
    for entries in hostile_rows().values():
        for label in (0, 1):
            more = with_record(entries, label, 11)
            largest = max(largest, compare(without, more, CONTRIBUTION, RUNS[run], **public))
            replaced = with_record(-hostile_rows()["signs"], 1 - label, 11)
            compare(more, replaced, 2 * CONTRIBUTION, RUNS[run], **public)
    assert 0.5 * CONTRIBUTION < largest <= CONTRIBUTION


@pytest.mark.parametrize("run", ["exact", "default", "standard"])
def test_weights_of_records_keep_the_units(run):
    public = BY_PUBLIC_FACTS | {"loss": Logistic(0.5, 0.3)}

    def carrying(X, y, shared, weight):
        weights = np.full(y.size, weight)
        weights[shared] = np.random.default_rng(2).random(N_ROWS)
        return X, y, shared, weights

    without = carrying(*other_rows(), np.arange(N_ROWS), 0.0)
    largest = 0
    for entries in hostile_rows().values():
        # Numbers that are no weights, which no fit makes, are taken for ones in [0, 1].
        for weight in (0.0, 0.3, 1.0, 1.9, -2.0, np.nan):
            more = carrying(*with_record(entries, 0, 11), weight)
            largest = max(largest, compare(without, more, CONTRIBUTION, RUNS[run], **public))
            replaced = carrying(*with_record(-hostile_rows()["signs"], 1, 11), 1.0)
            compare(more, replaced, 2 * CONTRIBUTION, RUNS[run], **public)
    assert 0.9 * CONTRIBUTION < largest <= CONTRIBUTION


def test_a_residual_beyond_the_declared_bound_is_caught():
    def unbounded(problem):
        return sparse(0.0)(problem._replace(loss=Logistic(1.0), share_limit=2.0 * CONTRIBUTION))

    without = (*other_rows(), np.arange(N_ROWS))
    with pytest.raises(BrokenInvariantError, match="a gradient moved"):
        compare(
            without,
            with_record(hostile_rows()["signs"], 0, 0),
            CONTRIBUTION,
            unbounded,
            residual_bound=0.5,
        )


def test_the_bounds_are_reached():
    """They are tight: a record in full costs nearly a whole contribution, replaced nearly two."""
    rows = hostile_rows()
    without = (*other_rows(), np.arange(N_ROWS))
    reached = [
        compare(without, with_record(rows["signs"], label, 0), CONTRIBUTION, sparse(0.0, seed))
        for label in (0, 1)
        for seed in range(5)
    ]
    assert max(reached) > 0.95 * CONTRIBUTION
    reached = [
        compare(
            with_record(rows["signs"], 0, 0),
            with_record(-rows["signs"], 0, 0),
            2 * CONTRIBUTION,
            sparse(0.0, seed),
        )
        for seed in range(5)
    ]
    assert max(reached) > CONTRIBUTION


@pytest.mark.parametrize("way", ["large", "recomputed"])
def test_it_holds_where_only_one_of_the_two_takes_large_steps(way):
    """How a step is computed may depend on all records: which gradients come out may not."""
    without = (*other_rows(), np.arange(N_ROWS))
    one_more = with_record(hostile_rows()["full"], 0, 3)
    # Column 0 is in half of the rows, and the added record makes it one more.
    threshold = (N_ROWS // 2 + 0.5) * np.count_nonzero(one_more[0]) / (N_ROWS + 1)
    options = WAYS[way] | {"entries_large": threshold}
    large = 0
    for X, y, _ in (without, one_more):
        problem = build(X, y, N_STEPS, bound=BOUND, radius=40.0)
        with large_steps(1, **options) as means:
            large += np.diff(problem.design.columns.indptr)[0] > large_rows(problem, means)
    assert large == 1
    for seed in range(5):
        run = sparse(0.0025, seed, way=options, n_threads=2)
        compare(without, one_more, CONTRIBUTION, run)


class TestPower:
    """Wrong implementations that the comparison above must catch."""

    def refresh_all_when_dense(self, problem):
        """A tempting shortcut: a column in most rows is a reason to refresh every row."""
        taken = random_transcript(problem, 0)
        taken.vertex[5] = 0
        for step, state in watch(problem, forced(taken), 0.1):
            j = taken.vertex[step - 1]
            if j < N_COLUMNS and np.diff(problem.design.columns.indptr)[j] > N_ROWS // 2:
                state.rows["gradient"] = true_gradient(problem, state.margin, step)
            yield step, state

    def test_refreshing_all_rows_of_a_dense_column_is_caught(self):
        without = (*other_rows(), np.arange(N_ROWS))
        one_more = with_record(hostile_rows()["lone"], 0, N_ROWS)
        with pytest.raises(BrokenInvariantError, match="of the others"):
            compare(without, one_more, CONTRIBUTION, self.refresh_all_when_dense)

    def test_entries_that_are_not_clipped_are_caught(self):
        def unclipped(problem):
            wider = with_design(problem, bound=10.0 * BOUND, intercept=False)
            return sparse(0.0)(wider._replace(share_limit=limit))

        without = (*other_rows(), np.arange(N_ROWS))
        huge = with_record(hostile_rows()["huge"], 0, 0)
        # With a limit of its own, a share stays within the bound whatever its entry is.
        limit = float(CONTRIBUTION)
        compare(without, huge, CONTRIBUTION, unclipped)
        limit *= 10.0
        with pytest.raises(BrokenInvariantError, match="a gradient moved"):
            compare(without, huge, CONTRIBUTION, unclipped)

    def test_the_smaller_bound_is_too_small_for_replacement(self):
        rows = hostile_rows()
        with pytest.raises(BrokenInvariantError, match="a gradient moved"):
            compare(
                with_record(rows["full"], 0, 0),
                with_record(-rows["full"], 0, 0),
                CONTRIBUTION,
                sparse(0.0, 1),
            )

    def test_a_scale_by_the_number_of_records_is_caught(self):
        def averaged(problem):
            return sparse(0.0)(problem._replace(radius=problem.radius / problem.labels.size))

        without = (*other_rows(), np.arange(N_ROWS))
        with pytest.raises(BrokenInvariantError, match="gradient of the others"):
            compare(without, with_record(hostile_rows()["empty"], 0, 0), CONTRIBUTION, averaged)


def log_probabilities(alpha, exponent):
    """Return the closed form of the selection over the signed vertices."""
    scores = exponent * np.concatenate([alpha, -alpha]).astype(np.float64)
    return scores - logsumexp(scores)


def log_ratios(one, other, mechanism, seeds):
    """Yield the log-ratios of all vertices' probabilities, at every step of several runs."""
    for seed in seeds:
        problems = [
            build(X, y, N_STEPS, bound=BOUND, radius=40.0, residual_bound=mechanism.residual_bound)
            for X, y, _ in (one, other)
        ]
        exponent = mechanism.rule(problems[0].unit).exponent
        runs = [watch(p, forced(random_transcript(p, seed)), 0.0025) for p in problems]
        for (_, a), (_, b) in zip(*runs, strict=True):
            left, right = (log_probabilities(state.alpha, exponent) for state in (a, b))
            yield left - right


def pairs(neighbors):
    rows = hostile_rows()
    without = (*other_rows(), np.arange(N_ROWS))
    for name, entries in rows.items():
        for label in (0, 1):
            if neighbors == "add-remove":
                yield without, with_record(entries, label, 4)
            else:
                yield with_record(entries, label, 4), with_record(-rows["signs"], label, 4)
                yield with_record(entries, label, 4), with_record(rows[name], 1 - label, 4)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("epsilon", "residual_bound"), [(0.1, 1.0), (1.0, 1.0), (30.0, 1.0), (1.0, 0.5), (30.0, 0.7)]
)
def test_a_step_is_bounded_range(neighbors, epsilon, residual_bound):
    mechanism = build_mechanism(
        epsilon=epsilon,
        delta=1e-6,
        n_iter=N_STEPS,
        neighbors=neighbors,
        feature_bound=BOUND,
        residual_bound=residual_bound,
    )
    allowed = mechanism.eps0 * (1 + 1e-9)
    widest = 0.0
    for one, other in pairs(neighbors):
        for ratios in log_ratios(one, other, mechanism, seeds=range(2)):
            assert np.abs(ratios).max() <= allowed
            assert np.ptp(ratios) <= allowed
            widest = max(widest, np.ptp(ratios))
    # The bound is nearly reached, so twice the scale would have been caught.
    assert widest > 0.6 * mechanism.eps0


def test_half_the_sensitivity_is_caught():
    """The scale for add-remove, used under replace-one."""
    options = {"epsilon": 1.0, "delta": 1e-6, "n_iter": N_STEPS, "feature_bound": BOUND}
    wrong = build_mechanism(neighbors="add-remove", **options)
    widest = max(
        np.ptp(ratios)
        for one, other in pairs("replace-one")
        for ratios in log_ratios(one, other, wrong, seeds=range(2))
    )
    assert widest > wrong.eps0


def test_the_true_sign_is_caught():
    """Coordinate by magnitude, then the true sign: one record decides what is possible at all."""
    one = with_record(hostile_rows()["owner"], 0, 4)
    other = with_record(hostile_rows()["owner"], 1, 4)
    signs = []
    for X, y, _ in (one, other):
        problem = build(X, y, N_STEPS, bound=BOUND)
        _, state = next(watch(problem, forced(random_transcript(problem, 0)), 0.0))
        signs.append(np.sign(state.alpha[OWNED]))
    # The vertex +e_12 has probability 0 on one data set and more than 0 on its neighbour.
    assert signs == [1, -1]
