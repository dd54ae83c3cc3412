"""The invariant that carries the privacy proof, by brute force on neighbouring data sets.

Two data sets that differ in one record take the same (forced) transcript. Every other record's
gradient, margin and due date must agree to the bit; the column gradients may differ by one record's
contribution; the log-probabilities of the vertices may move by eps0.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
)
from dplasso.frank_wolfe import large_step
from dplasso.frank_wolfe.large_step import large_rows
from dplasso.frank_wolfe.round_part import RoundRows, RoundSteps
from dplasso.frank_wolfe.rounds import round_end
from dplasso.losses.logistic import Logistic
from dplasso.losses.targets import NO_WEIGHTS
from dplasso.privacy.exponential_mechanism import vertex_mechanism
from frank_wolfe.cases import (
    add_changes,
    build,
    forced,
    random_transcript,
    taking,
    true_residuals,
    watch,
)
from neighbours import (
    BOUND,
    FREE,
    N_COLUMNS,
    N_ROWS,
    added,
    common_records,
    hostile_records,
    moved_by,
    pairs,
    replaced,
)
from recorded_fits import short_runs
from recorder import compare as compare_fits
from selection.invariants import BrokenInvariantError, demand

N_STEPS = 16
CONTRIBUTION = 2**32
UNITS = {"add-remove": CONTRIBUTION, "replace-one": 2 * CONTRIBUTION}
HOSTILE = hostile_records()
each_relation = pytest.mark.parametrize("relation", UNITS)


def compare(pair, run, units=None, n_steps=N_STEPS, weights=2 * (NO_WEIGHTS,), **public):
    """Run both of two neighbours, and compare them at every step.

    Return the largest difference of a column gradient as a part of what is allowed.
    """
    public = {"radius": 40.0, "bound": BOUND} | public
    units = units or UNITS[pair.relation]
    data = zip(pair.rows, pair.labels, weights, strict=True)
    runs = (run(build(X, y, n_steps, weights=own, **public)) for X, y, own in data)
    at_one, at_other = pair.shared
    largest = 0
    for step, ((_, a), (_, b)) in enumerate(zip(*runs, strict=True)):
        for name in ("gradient", "margin"):
            left, right = getattr(a, name)[at_one], getattr(b, name)[at_other]
            demand(left.tobytes() == right.tobytes(), f"{name} of the others at step {step}")
        if hasattr(a, "rows"):
            due = a.rows["due"][at_one], b.rows["due"][at_other]
            demand((due[0] == due[1]).all(), f"due dates of the others at step {step}")
        # Differences of 64-bit integers, in Python's.
        moved = max(abs(p - q) for p, q in zip(a.alpha.tolist(), b.alpha.tolist(), strict=True))
        demand(moved <= units, f"a gradient moved by {moved} at step {step}")
        largest = max(largest, moved)
    return largest / units


def vertices(problem, seed):
    return forced(random_transcript(problem, seed))


def sparse(drift_tol, seed=0, **options):
    return lambda problem: watch(problem, vertices(problem, seed), drift_tol, **options)


@dataclass
class RoundState:
    alpha: np.ndarray
    margin: np.ndarray
    gradient: np.ndarray


def rounds(problem):
    """Take different vertices, each of weight 1; yield the state after every round."""
    n_steps, n_columns = problem.n_steps, problem.design.n_columns
    steps = RoundSteps(problem.loss, BOUND, n_columns, n_steps, 1.0, 32)
    rows = RoundRows(steps, problem.design, problem.targets)
    taken, done = random_transcript(problem, 0), 0
    vertex = np.random.default_rng(0).permutation(n_columns)[:n_steps]
    state = RoundState(rows.start(), rows._margin, rows._residual)
    while done < n_steps:
        end = round_end(n_steps, done + 1)
        add_changes(state.alpha, rows.move(vertex[done:end], taken.sign[done:end]))
        done = end
        yield done, state


RUNS = {
    "exact": sparse(0.0),
    "default": sparse(0.0025),
    "loose": sparse(0.1),
    "stale": sparse(None),
    "standard": lambda problem: watch(problem, vertices(problem, 0), None, solver="standard"),
}


@each_relation
@pytest.mark.parametrize("run", RUNS)
def test_one_record_moves_gradients_by_one_contribution(run, relation):
    reached = max(compare(pair, RUNS[run]) for pair in pairs(relation))
    # The bounds are tight: a record in full costs nearly all of it.
    assert reached > 0.95 or run == "stale"


# What a fit by public facts takes: margins that start at the balance of the classes, every column
# at most once; and classes of unequal weight.
BY_PUBLIC_FACTS = {"n_steps": 11, "intercept": False}
PUBLIC_RUNS = pytest.mark.parametrize("run", [rounds, RUNS["default"]], ids=["rounds", "default"])
LOSSES = [Logistic(0.5, 0.8), Logistic(0.5, -1.5, 0.3, 1.0), Logistic(0.75, 0.0, 1.0, 0.01)]


@pytest.mark.parametrize("loss", LOSSES)
@PUBLIC_RUNS
def test_offsets_weights_and_distinct_columns_keep_the_units(run, loss):
    public = BY_PUBLIC_FACTS | {"loss": loss}
    for relation in UNITS:
        assert max(compare(pair, run, **public) for pair in pairs(relation)) > 0.5


@PUBLIC_RUNS
def test_weights_of_records_keep_the_units(run):
    public = BY_PUBLIC_FACTS | {"loss": Logistic(0.5, 0.3)}

    def weights(pair, own):
        """Weights of both; the record that differs has its own."""
        for labels, shared, weight in zip(pair.labels, pair.shared, own, strict=True):
            found = np.full(labels.size, weight)
            found[shared] = np.random.default_rng(2).random(shared.size)
            yield found

    # Numbers that are no weights, which no fit makes, are taken for ones in [0, 1].
    owns = ((0.0, 0.3), (0.3, 1.0), (1.0, 1.9), (-2.0, np.nan))
    for relation in UNITS:
        reached = [
            compare(pair, run, weights=weights(pair, own), **public)
            for pair in pairs(relation)
            for own in owns
        ]
        assert max(reached) > 0.9


@pytest.mark.parametrize("way", ["large", "recomputed"])
def test_it_holds_where_only_one_of_the_two_takes_large_steps(way, monkeypatch):
    """How a step is computed may depend on all records: which gradients come out may not."""
    pair = added("full", HOSTILE["full"], 0, 3)
    # Column 0 is in half of the rows, and the added record makes it one more.
    threshold = (N_ROWS // 2 + 0.5) * np.count_nonzero(pair.rows[1]) / (N_ROWS + 1)
    large = 0
    # Undone before what `taking` sets.
    with taking(way), monkeypatch.context() as patch:
        patch.setattr(large_step, "LARGE_STEP_ENTRIES", threshold)
        for X, y in zip(pair.rows, pair.labels, strict=True):
            problem = build(X, y, N_STEPS, bound=BOUND, radius=40.0)
            large += np.diff(problem.design.columns.indptr)[0] > large_rows(problem)
        assert large == 1
        for seed in range(5):
            compare(pair, sparse(0.0025, seed, n_threads=2))


class TestPower:
    """Wrong implementations that the comparison above must catch."""

    def caught(self, pair, run, words, **public):
        with pytest.raises(BrokenInvariantError, match=words):
            compare(pair, run, **public)

    def test_refreshing_all_rows_of_a_dense_column_is_caught(self):
        """A tempting shortcut: a column in most rows is a reason to refresh every row."""

        def refresh_all_when_dense(problem):
            taken = random_transcript(problem, 0)
            taken.vertex[5] = 0
            for step, state in watch(problem, forced(taken), 0.1):
                j = taken.vertex[step - 1]
                if j < N_COLUMNS and np.diff(problem.design.columns.indptr)[j] > N_ROWS // 2:
                    state.rows["gradient"] = true_residuals(problem, state.margin, step)[:, 0]
                yield step, state

        lone = added("lone", HOSTILE["half the rows' column alone"], 0, N_ROWS)
        self.caught(lone, refresh_all_when_dense, "of the others")

    def test_the_smaller_bound_is_too_small_for_replacement(self):
        full = replaced("full", (HOSTILE["full"], -HOSTILE["full"]), (0, 0), 0)
        self.caught(full, sparse(0.0, 1), "a gradient moved", units=CONTRIBUTION)


def widest_range(relation, mechanism, residual_bound=1.0):
    """Return by how much the log-probabilities of vertices move, of all neighbours at all steps."""
    widest = 0.0
    for seed, pair in enumerate(pairs(relation)):
        public = {"bound": BOUND, "radius": 40.0, "residual_bound": residual_bound}
        data = zip(pair.rows, pair.labels, strict=True)
        problems = [build(X, y, N_STEPS, **public) for X, y in data]
        exponent = mechanism.in_units(problems[0].unit).exponent
        runs = [watch(p, forced(random_transcript(p, seed)), 0.0025) for p in problems]
        for states in zip(*runs, strict=True):
            # The closed form of the selection over the signed vertices.
            scores = [exponent * np.r_[one.alpha, -one.alpha].astype(float) for _, one in states]
            one, other = (score - logsumexp(score) for score in scores)
            widest = max(widest, np.abs(one - other).max(), np.ptp(one - other))
    return widest


@each_relation
@pytest.mark.parametrize(
    ("eps0", "residual_bound"), [(0.01, 1.0), (0.1, 1.0), (3.0, 1.0), (0.1, 0.5), (3.0, 0.7)]
)
def test_a_step_is_bounded_range(relation, eps0, residual_bound):
    mechanism = vertex_mechanism(eps0, moved_by(BOUND * residual_bound, relation))
    # The bound is nearly reached, so twice the scale would have been caught.
    assert 0.6 < widest_range(relation, mechanism, residual_bound) / eps0 <= 1 + 1e-9


def test_the_true_sign_is_caught():
    """Coordinate by magnitude, then the true sign: one record decides what is possible at all."""
    X, y = common_records(dtype=np.float64)
    signs = []
    for label in (0, 1):
        rows = np.vstack([X, HOSTILE["owner of a column"]])
        problem = build(rows, np.append(y, label), N_STEPS, bound=BOUND)
        _, state = next(watch(problem, forced(random_transcript(problem, 0)), 0.0))
        signs.append(np.sign(state.alpha[FREE]))
    # The vertex of that column has probability 0 on one data set and more than 0 on its neighbour.
    assert signs == [1, -1]


class TestUnsortedRows:
    """One record in another order must not change in what order others are added up."""

    # In stored order they add up to 2, in another one to anything from -1e30 to 1e30.
    PARTS = (1.0, -1e30, 1e30, -1.0, 1.0, 1.0)

    def fitted(self, form):
        """Return a function that fits rows, given in the order of their entries, and labels."""

        def work(data):
            X, y = data
            if form == "csc":
                # The last row leads in every column, so the columns do not ascend if it has any.
                order = np.r_[len(y) - 1, : len(y) - 1]
                csc = X[order].tocsc()
                X = sp.csc_array((csc.data, order[csc.indices], csc.indptr), shape=X.shape)
            X = X.tocoo() if form == "coo" else X
            if form == "longdouble":
                # Not by scipy, whose conversions add up duplicates.
                X.data = X.data.astype(np.longdouble)
            return DPLogisticRegression(1.0, classes=[False, True]).fit(X, y)

        return work

    @pytest.mark.parametrize("form", ["csr", "csc", "coo", "longdouble"])
    def test_leave_the_others_as_they_are(self, form):
        n_rows, n_zeros = 1000, 35
        columns = np.tile(np.r_[np.zeros(6, int), 1 : n_zeros + 1], n_rows)
        entries = np.tile(np.r_[self.PARTS, np.zeros(n_zeros)], n_rows)
        ends = np.arange(0, columns.size + 1, 6 + n_zeros)
        rows = sp.csr_array((entries, columns, ends), shape=(n_rows, n_zeros + 1))
        unsorted = sp.csr_array(([1.0, 1.0], [3, 0], [0, 2]), shape=(1, n_zeros + 1))
        more = sp.csr_array(
            (
                np.r_[rows.data, unsorted.data],
                np.r_[rows.indices, unsorted.indices],
                np.r_[rows.indptr, rows.indptr[-1] + 2],
            ),
            shape=(n_rows + 1, n_zeros + 1),
        )
        y = np.arange(n_rows) % 5 > 0
        pair = (rows, y), (more, np.append(y, True))
        assert compare_fits(self.fitted(form), *pair).violations == ()


@pytest.mark.parametrize("kind", [DPLassoClassifier, DPLasso])
def test_a_record_of_weight_0_moves_nothing(kind):
    """All entries of the others are equal, and beyond a bound that is no float32."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 40)) < 0.5).astype(np.float32)
    y, prior = rng.integers(0, 2, 400), rng.normal(size=(1, 40))
    more = np.vstack([X, np.where(np.arange(40), 0.0, 0.5)]).astype(np.float32)
    pair = (X, y, np.ones(400)), (more, np.append(y, 1), np.append(np.ones(400), 0.0))
    options = {"max_weights": 3, "feature_bound": 0.1, "prior": prior}
    options |= {"target_bounds": (0.0, 1.0)} if kind is DPLasso else {}

    def work(data):
        X, y, weights = data
        with short_runs():
            return kind(1000.0, **options).fit(X, y, sample_weight=weights)

    found = compare_fits(work, *pair)
    assert found.violations == ()
    assert found.largest == 0.0


@pytest.mark.parametrize("odd", ["target", "row"])
def test_no_record_ends_a_charged_fit_where_numpy_raises_errors(odd):
    """Of a number so small that its square, or its product with a factor, is 0."""
    X, y = common_records(dtype=np.float64)
    y, prior = y.astype(float), np.append(0.0, np.ones(N_COLUMNS - 1))
    if odd == "target":
        y[3] = 1e-200
    else:
        X[3] = np.append(1e300, np.full(N_COLUMNS - 1, 5e-324))
    model = DPLinearRegression(1.0, target_bounds=(-1.0, 1.0), prior=prior)
    ended = ""
    with np.errstate(all="raise"), short_runs():
        try:
            model.fit(X, y)
        except FloatingPointError as error:
            ended = str(error)
    assert ended == ""


def powers(lowest, highest):
    """Return numbers of every magnitude."""
    return st.floats(math.log10(lowest), math.log10(highest)).map(lambda power: 10.0**power)


# Settings of a fit.
ACCEPTED = st.fixed_dictionaries(
    {
        "l1_radius": powers(1e-300, 1e250),
        "feature_bound": powers(1e-100, 1e100),
        "epsilon": powers(1e-6, 1e3),
        "delta": powers(1e-9, 0.5),
        "drift_tol": st.one_of(st.none(), st.just("auto"), powers(1e-300, 1e300), st.just(0.0)),
        "neighbors": st.sampled_from(["add-remove", "replace-one"]),
        # Nothing is counted, which would need a delta for its own rounding.
        "fit_intercept": st.just(False),
        "n_records": st.just(8),
    }
).filter(lambda options: options["l1_radius"] * options["feature_bound"] <= 1e100)


@settings(max_examples=25, deadline=None)
@given(options=ACCEPTED, seed=st.integers(0, 2**16))
def test_one_record_moves_no_statistic_by_more_than_its_sensitivity(options, seed):
    rng = np.random.default_rng(7)
    X = sp.random_array((9, 5), density=0.6, format="csr", rng=rng)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    X.data = rng.choice([-1.0, 1.0], X.data.size) * rng.choice([1.0, 1e-3, 1e30], X.data.size)
    X.data *= min(options["feature_bound"], 1e150)
    y = rng.integers(0, 2, 9)

    def fit(rows):
        model = DPFrankWolfeClassifier(n_iter=8, classes=(0, 1), random_state=seed, **options)
        with np.errstate(over="ignore"):
            model.fit(X[rows], y[rows])
        assert model.privacy_.epsilon <= options["epsilon"]
        assert np.isfinite(model.coef_.data).all()
        assert np.isfinite(model.intercept_).all()
        return model

    other = [*range(7), 8] if options["neighbors"] == "replace-one" else range(7)
    compared = compare_fits(fit, range(8), other)
    assert compared.violations == ()
    assert compared.statistics == 8
