"""What leaves a fit: nothing but what was released and public settings, under fresh noise.

That nothing else differs on neighbours is in `tests/privacy/test_recorded_fits.py`,
`tests/model/test_released_bytes.py` and `tests/evidence/assurance/test_replay.py`.

False alarms: the transcripts compared here have at least 20 steps over 402 vertices, each of
probability below 0.2 (tested), so that two independent ones agree with probability below 1e-13.
"""

import multiprocessing
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dplasso import DPFrankWolfeClassifier, DPLogisticRegression, PrivacyLeakWarning, PrivateSearch
from estimators.kinds import CLASSIFIERS, SORTS, each_kind, each_sort, few, fitted, make, numbers
from estimators.workers import drawn, drawn_by_default, noise_data
from small_fits import short_runs

INF = float("inf")
COMMON = {"coef_", "intercept_", "n_iter_", "model_", "n_features_in_", "privacy_"}


@each_sort
def test_a_fit_has_the_documented_attributes_only(sort):
    model = fitted(sort)
    expected, private = set(COMMON), model.epsilon != INF
    expected |= {"classes_"} if SORTS[sort].targets != "numbers" else set()
    expected |= {"inference_"} if "intervals" in sort else set()
    expected |= {"n_records_"} if private else set()
    if "frank-wolfe" in sort:
        expected |= {"transcript_"} if private else {"transcript_", "history_", "work_"}
    found = vars(model).keys() - model.get_params().keys()
    # Which of the LASSO's settings follow from the noisy counts is released with them.
    by_counts = {"coef_standard_error_", "column_scale_", "column_center_"}
    by_counts |= {"transcript_"} if "lasso" in sort else set()
    assert found - by_counts == expected - by_counts
    assert ("coef_standard_error_" in found) or "lasso" in sort or "frank-wolfe" in sort


@pytest.mark.parametrize(("n_records", "use"), [(120, "given as public"), (None, "counted")])
def test_a_number_of_records_that_sets_the_tolerance_is_said_to_be_used(n_records, use):
    model = make("frank-wolfe", n_iter=5, fit_intercept=False, n_records=n_records)
    statement = model.fit(*few()).privacy_
    assert statement.records.startswith(use)
    words = "the number of records (it sets how exactly gradients are kept)"
    assert (words in statement.text()) == (n_records is not None)


@each_kind
def test_a_statement_says_whether_a_fit_is_private_and_where_its_classes_are_from(kind):
    declared = {"classes": ("no", "yes")} if kind in CLASSIFIERS else {}
    statement = make(kind, **declared).fit(*few(kind)).privacy_
    assert (statement.is_private, statement.reasons) == (True, ())
    assert 0.99 < statement.epsilon <= 1.0
    assert statement.delta == 1e-6
    assert statement.randomness == "operating system"
    assert statement.classes == ("declared" if declared else "none")
    without = make(kind, INF).fit(*few(kind)).privacy_
    assert (without.is_private, without.epsilon, without.randomness) == (False, INF, "none")
    assert without.classes == ("taken from y, treated as public" if declared else "none")


@each_kind
@pytest.mark.parametrize("seed", [0, np.random.default_rng(0), np.random.RandomState(0)])
def test_a_seeded_fit_is_not_private(kind, seed):
    statement = make(kind, random_state=seed).fit(*few(kind)).privacy_
    assert (statement.is_private, statement.randomness) == (False, "seeded")
    assert "a seed was given" in " ".join(statement.reasons)
    assert "NOT differentially private" in statement.text()


@each_kind
def test_a_seed_repeats_exactly_and_none_does_not(kind):
    X, y = few(kind)
    model = make(kind, random_state=np.int64(3))
    first = numbers(model.fit(X, y))
    np.testing.assert_array_equal(numbers(model.fit(X, y)), first)
    np.testing.assert_array_equal(numbers(clone(model).fit(X, y)), first)
    others = [3 + 1, np.random.default_rng(0), None, None]
    found = [numbers(model.set_params(random_state=seed).fit(X, y)) for seed in others]
    for one, other in zip(found, [first, *found[:-1]], strict=True):
        assert not (one == other)[np.arange(13) != 5].any()


class TestNoiseNeverRepeats:
    def distinct(self, transcripts):
        assert len(set(transcripts)) == len(transcripts)

    def test_vertices_are_about_equally_likely_here(self):
        X, y = noise_data()
        statement = DPFrankWolfeClassifier(n_iter=20).fit(X, y).privacy_
        gradient = np.append(X.T @ (0.5 - y), (0.5 - y).sum())
        # Later gradients are no larger than the number of a column's rows.
        largest = max(np.abs(gradient).max(), X.sum(axis=0).max(), X.shape[0])
        assert np.exp(statement.number("eps0") / 2 * largest) / (2 * gradient.size) < 0.2

    def test_fits_clones_pickles_and_generators(self):
        data = noise_data()
        model = DPFrankWolfeClassifier(n_iter=20)
        fits = [drawn(model.fit(*data)) for _ in range(3)]
        blob = pickle.dumps(model)
        copies = [clone(model), clone(model), *(pickle.loads(blob) for _ in range(3))]
        self.distinct([*fits, *(drawn(copy.fit(*data)) for copy in copies)])
        moving = DPFrankWolfeClassifier(n_iter=20, random_state=np.random.default_rng(0))
        self.distinct([drawn(moving.fit(*data)) for _ in range(3)])

    # Newer Pythons warn where a process with threads forks.
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    @pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
    def test_processes(self, method):
        # The parent has fitted before, so anything it holds is there to be inherited.
        mine = drawn_by_default()
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            fits = [pool.submit(drawn_by_default) for _ in range(6)]
            self.distinct([mine, drawn_by_default(), *(fit.result() for fit in fits)])


@each_kind
def test_no_global_state_is_touched(kind):
    found = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].tobytes()  # noqa: NPY002
        found.append(numbers(make(kind).fit(*few(kind))))
        assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    assert not (found[0] == found[1])[np.arange(13) != 5].any()


FOUND = [["note_John Q. Patient", "note_Jane Doe", "age"], [f"postcode_{k}" for k in range(60)]]
DECLARED = [
    ["blood_pressure", "blood_sugar", "ward_A", "ward_B", "days in_care"],
    ["seen by_a doctor", "age in years", "_", "x_"],
]


@pytest.mark.parametrize("names", FOUND + DECLARED, ids=lambda names: names[0])
def test_names_of_columns_that_were_taken_from_data_are_noticed(names):
    rng = np.random.default_rng(0)
    frame, y = pd.DataFrame(rng.random((300, len(names))), columns=names), np.arange(300) % 2
    search = PrivateSearch(DPLogisticRegression(classes=[0, 1]), {"max_weights": [None]})
    for estimator in (DPLogisticRegression(classes=[0, 1]), search):
        with short_runs(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PrivacyLeakWarning)
            estimator.fit(frame, y)
        told = [str(one.message) for one in caught if one.category is PrivacyLeakWarning]
        assert len(told) == (names in FOUND)
        assert all(names[0] in one and "named it after a" in one for one in told)
