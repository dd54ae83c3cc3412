"""Everything a fit does but the mechanism's input is the same on neighbours; the input is near.

Every test here forces the released vertices on both data sets. There is no randomness in what is
compared, so there are no false alarms.
"""

import re
from dataclasses import replace

import numpy as np
import pytest

from dplasso import DataError
from frank_wolfe.reference import column_gradients
from neighbours import (
    BOUND,
    INPUT_KINDS,
    N_COLUMNS,
    Pair,
    common_records,
    hostile_records,
    in_form,
    pairs,
)
from replay import DECLARED, compare_inputs, inputs, random_transcript, record

N_STEPS = 12
# Where one form of the data is enough.
FORM = "csr float32"
SOLVERS = {
    "exact": {"drift_tol": 0.0},
    "default": {},
    "loose": {"drift_tol": 0.1},
    "stale": {"drift_tol": None},
    "standard": {"solver": "standard"},
}
SELECTORS = ("bucket", "noisy-max", "big-little")
RELATIONS = ("add-remove", "replace-one")
each_relation = pytest.mark.parametrize("relation", RELATIONS)
each_solver = pytest.mark.parametrize("solver", SOLVERS)
each_selector = pytest.mark.parametrize("selector", SELECTORS)


def transcripts(number):
    """Return transcripts an adversary might see."""
    return random_transcript(N_COLUMNS, N_STEPS, number)


def every(sequence, number, of):
    """Return a part of the sequence, all of it in turn as `number` goes through `of` values."""
    return [item for i, item in enumerate(sequence) if i % of == number % of]


def farthest(model, some, form=FORM, taken=transcripts):
    """Compare what the mechanism is shown of each of some pairs; return how far it moved at most.

    Each pair has vertices of its own.
    """
    largest = 0
    for number, pair in enumerate(some):
        violations, moved = compare_inputs(model, pair, form, taken(number))
        assert violations == [], (pair.name, pair.labels)
        largest = max(largest, moved)
    return largest


@each_relation
@pytest.mark.parametrize("form", INPUT_KINDS)
@each_solver
class TestWhatTheMechanismSees:
    def test_is_within_the_declared_sensitivity(self, private_model, solver, form, relation):
        number = list(SOLVERS).index(solver) + list(INPUT_KINDS).index(form)
        kind = ("mixed", "binary")[number % 2]
        model = private_model(**SOLVERS[solver], n_jobs=1 + number % 3)
        # Two pairs for each; together the solvers and forms meet all of them.
        some = every(pairs(relation, INPUT_KINDS[form][0], kind), number, 11)
        farthest(model, some, form, lambda _: transcripts(number))


@each_relation
@each_solver
def test_all_neighbours_in_one_form(private_model, solver, relation):
    largest = farthest(private_model(**SOLVERS[solver]), pairs(relation, np.float32))
    # The bound is nearly reached, so a smaller sensitivity would have been noticed.
    assert largest > 0.9 * DECLARED[relation]


@each_relation
def test_all_neighbours_of_three_classes(private_model, relation):
    def of_three(pair):
        """Of the records in common, and of the one that differs, some are of the third class."""
        third = tuple(np.where(np.abs(rows).sum(axis=1) > 3.0, 2, 0) for rows in pair.rows)
        return replace(pair, labels=tuple(map(np.maximum, pair.labels, third)))

    model = private_model(classes=(0, 1, 2))
    some = map(of_three, pairs(relation, np.float32))
    largest = farthest(model, some, taken=lambda k: random_transcript(3 * N_COLUMNS, N_STEPS, k))
    assert largest > 0.9 * DECLARED[relation]


@each_relation
@pytest.mark.parametrize("first", [0, 100])
def test_all_neighbours_with_entries_stored_twice(private_model, relation, first):
    # Only their sums are clipped: clipped apart, a record would count twice.
    given = "duplicate entries", lambda number: transcripts(first + number)
    farthest(private_model(), pairs(relation, np.float32), *given)


@each_solver
def test_forms_and_threads_show_the_mechanism_the_same(private_model, solver):
    pair, seen = next(pairs("add-remove")), []
    for number, form in enumerate(INPUT_KINDS):
        threads = (None, 3)[(number + list(SOLVERS).index(solver)) % 2]
        model = private_model(**SOLVERS[solver], n_jobs=threads)
        seen.append(inputs(model, in_form(form, pair)[0], transcripts(0)))
    seen.append(inputs(model, in_form(FORM, pair)[0], transcripts(0)))
    for other in seen[1:]:
        for (alpha, q), (beta, r) in zip(seen[0], other, strict=True):
            assert alpha.tobytes() == beta.tobytes()
            assert q.tobytes() == r.tobytes()


@each_solver
def test_gradients_are_the_exact_sum_of_rounded_shares(private_model, solver):
    # No drift and no order: recomputed from the record gradients alone, to the unit.
    for seed in range(2):
        X, y = common_records(seed=seed)
        model = private_model(**SOLVERS[solver], residual_bound=0.5)
        states = inputs(model, (X, y), transcripts(seed))
        for alpha, q in states:
            expected = column_gradients(X, q.ravel(), BOUND, intercept=False, residual_bound=0.5)
            assert alpha.tolist() == expected


@pytest.mark.parametrize("form", INPUT_KINDS)
@each_solver
class TestEverythingElse:
    def test_is_the_same(self, private_model, replay, solver, form):
        number = list(SOLVERS).index(solver) + list(INPUT_KINDS).index(form)
        for relation in RELATIONS:
            options = {"selector": SELECTORS[number % 3], "n_jobs": 1 + number % 3}
            options |= {"neighbors": relation}
            model = private_model(**SOLVERS[solver], **options)
            taken = random_transcript(N_COLUMNS, N_STEPS, number)
            for pair in every(pairs(relation, INPUT_KINDS[form][0]), number, 11):
                assert replay(model, pair, form, taken) == [], pair.name


@each_selector
@each_relation
def test_everything_else_is_the_same_for_all_neighbours(private_model, replay, relation, selector):
    model = private_model(neighbors=relation, selector=selector)
    for kind in ("mixed", "binary"):
        # Every record, with one of the labels; another structure takes the other.
        for pair in every(pairs(relation, np.float32, kind), SELECTORS.index(selector), 2):
            assert replay(model, pair, FORM) == [], pair.name


@each_selector
@pytest.mark.parametrize("solver", ["sparse", "standard"])
def test_the_calls_inside_are_the_same_where_both_draw(private_model, solver, selector):
    # Not forced: structures are built as in a real fit, their sizes and scales recorded.
    model = private_model(solver=solver, selector=selector)
    for relation in RELATIONS:
        for pair in every(pairs(relation, np.float32, "binary"), len(solver), 2):
            one, other = (record(model, data) for data in in_form(FORM, pair))
            assert [call[0] for call in one.calls].count("make_selector") == 1
            for name in ("calls", "warned", "totals", "entropy", "numpy_state"):
                assert getattr(one, name) == getattr(other, name), (name, pair.name)
            assert one.attributes.keys() == other.attributes.keys()


def test_entropy_is_asked_for_once_and_nothing_is_printed(private_model):
    seen = record(private_model(), common_records())
    assert (seen.error, seen.entropy, seen.texts[-1]) == ("", [32], "")
    # Of so few records, by their public number.
    assert [name for name, _ in seen.warned] == ["NoiseWarning"]
    assert seen.totals == {N_STEPS}
    assert seen.numpy_state


def test_a_progress_bar_says_the_same_but_for_the_time(private_model, capfd):
    texts = []
    for data in in_form(FORM, next(pairs("add-remove", np.float32))):
        private_model(verbose=1).fit(*data)
        shown = capfd.readouterr()
        assert shown.out == ""
        texts.append(re.sub(r"\d:\d\d:\d\d|-:--:--", "time", shown.err))
    assert texts[0] == texts[1] != ""


class TestClasses:
    """The only record of a class is the differing one."""

    def lone_positive(self, label):
        X, y = common_records()
        y[:] = 0
        other = np.vstack([X, hostile_records()["ordinary"]]), np.append(y, label)
        places = np.arange(y.size)
        return Pair("lone", "add-remove", (X, other[0]), (y, other[1]), (places, places))

    @pytest.mark.parametrize("label", [0, 1])
    def test_declared_classes_hide_it(self, private_model, replay, label):
        pair = self.lone_positive(label)
        assert replay(private_model(), pair, FORM) == []
        farthest(private_model(), [pair])

    def test_classes_from_the_labels_cannot_and_the_statement_says_so(self, private_model):
        one, other = in_form(FORM, self.lone_positive(1))
        with pytest.raises(DataError, match="only one class"):
            private_model(classes=None).fit(*one)
        statement = private_model(classes=None).fit(*other).privacy_
        assert statement.classes == "taken from y, treated as public"


class TestPower:
    """What the comparison has to see; more leaks are planted in planted.toml."""

    def test_a_scale_by_the_number_of_rows_is_seen(self, private_model, replay):
        # The paper's mechanism takes N: the same comparison fails for it.
        pair = next(pair for pair in pairs("add-remove", np.float32) if pair.name == "huge")
        found = replay(private_model(mechanism="paper"), pair, FORM)
        assert any("calls" in item for item in found)
