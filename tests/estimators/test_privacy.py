"""What leaves a fit: nothing but functions of the transcript and public settings, and fresh noise.

False alarms: the transcripts compared here have at least 20 steps over 402 vertices, each of
probability below 0.01 (tested), so two independent ones agree with probability below 1e-40.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dplasso import DPLassoClassifier, PrivacyLeakWarning
from dplasso.estimators.fitting import fit_estimator
from dplasso.fit.hooks import Hooks
from estimators.workers import fingerprint, noise_data, transcript_of, transcript_of_default
from frank_wolfe.cases import dense_rows, some_labels

INF = float("inf")
FITTED = {
    "coef_",
    "intercept_",
    "classes_",
    "n_iter_",
    "model_",
    "n_features_in_",
    "privacy_",
    "transcript_",
}


@pytest.fixture
def neighbours():
    """Two data sets: the second has one more record, hostile in all ways at once."""
    X, y = dense_rows(30, 8, 0).astype(np.float64), some_labels(30, 0)
    X[:, 7] = 0.0
    record = np.array([1e300, -1e300, 5e-324, -0.0, 1.0, 0.3, 0.0, 2.0])
    return (X, y), (np.vstack([record, X]), np.append(y[0] * 0 + 1, y).astype(y.dtype))


def replayed(model, data, taken):
    return fit_estimator(clone(model), *data, Hooks(replay=taken))


class TestNothingElseLeaves:
    @pytest.mark.parametrize("solver", ["sparse", "standard"])
    @pytest.mark.parametrize("classes", [None, (0, 1)])
    @pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
    def test_the_same_transcript_gives_the_same_model(
        self, neighbours, solver, classes, neighbors, tmp_path
    ):
        model = DPLassoClassifier(
            n_iter=25, l1_radius=10.0, classes=classes, solver=solver, neighbors=neighbors
        )
        taken = clone(model).fit(*neighbours[0]).transcript_
        one, other = (replayed(model, data, taken) for data in neighbours)
        assert vars(one).keys() == vars(other).keys()
        for name in vars(one):
            assert pickle.dumps(vars(one)[name]) == pickle.dumps(vars(other)[name]), name
        assert pickle.dumps(one) == pickle.dumps(other)
        one.save(tmp_path / "one.npz")
        other.save(tmp_path / "other.npz")
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()

    def test_a_leak_would_be_seen(self, neighbours):
        # Without privacy the same comparison fails: the history tells the data sets apart.
        model = DPLassoClassifier(epsilon=INF, n_iter=25, l1_radius=10.0)
        taken = clone(model).fit(*neighbours[0]).transcript_
        one, other = (replayed(model, data, taken) for data in neighbours)
        assert pickle.dumps(one) != pickle.dumps(other)

    @pytest.mark.parametrize("solver", ["sparse", "standard"])
    @pytest.mark.parametrize("selector", ["bucket", "noisy-max"])
    def test_a_private_fit_has_the_documented_attributes_only(self, neighbours, solver, selector):
        model = DPLassoClassifier(n_iter=5, l1_radius=10.0, solver=solver, selector=selector)
        params, (X, y) = set(model.get_params()), neighbours[0]
        assert set(vars(model.fit(X.astype(np.float32), y))) == params | FITTED

    def test_so_has_a_fit_that_chooses_its_settings(self, neighbours):
        for data in neighbours:
            model = DPLassoClassifier(epsilon=5.0, n_iter=3)
            params = set(model.get_params())
            found = set(vars(model.fit(*data))) - params - FITTED
            # Which of the two depends on the noisy counts, which are released.
            assert found - {"coef_standard_error_"} == {"n_records_"}

    def test_so_have_fits_that_are_not_private(self, neighbours):
        model = DPLassoClassifier(n_iter=5, l1_radius=10.0, epsilon=INF)
        params = set(model.get_params())
        model.fit(*neighbours[0])
        assert set(vars(model)) == params | FITTED | {"history_", "work_"}
        model.set_params(epsilon=1.0, mechanism="paper")
        with pytest.warns(PrivacyLeakWarning):
            model.fit(*neighbours[0])
        assert set(vars(model)) == params | FITTED | {"work_"}
        model.set_params(mechanism="exponential").fit(*neighbours[0])
        assert set(vars(model)) == params | FITTED

    def test_no_warning_depends_on_values(self, neighbours):
        # Warnings are errors: one about clipping, or about the hostile record, would fail here.
        for data in neighbours:
            model = DPLassoClassifier(n_iter=5, l1_radius=10.0).fit(*data)
            model.predict_proba(data[0])

    def test_progress_tells_only_the_steps(self, neighbours):
        totals = set()
        for data in neighbours:
            model = DPLassoClassifier(n_iter=5, l1_radius=10.0)
            show = Hooks(progress=lambda done, total: totals.add((done, total)))
            fit_estimator(model, *data, show)
        assert totals <= {(done, 5) for done in range(1, 6)}


class TestStatement:
    def test_a_default_fit_is_private(self, neighbours):
        statement = (
            DPLassoClassifier(n_iter=5, l1_radius=10.0, classes=(0, 1)).fit(*neighbours[0]).privacy_
        )
        assert statement.is_private
        assert 0.99 < statement.epsilon <= 1.0
        assert statement.delta == 1e-6
        assert statement.randomness == "operating system"
        assert statement.classes == "declared"
        assert statement.reasons == ()

    @pytest.mark.parametrize(
        "seed", [0, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)]
    )
    def test_a_seeded_fit_is_not(self, neighbours, seed):
        statement = (
            DPLassoClassifier(n_iter=5, l1_radius=10.0, random_state=seed)
            .fit(*neighbours[0])
            .privacy_
        )
        assert not statement.is_private
        assert statement.randomness == "seeded"
        assert "random_state was given" in " ".join(statement.reasons)

    def test_neither_is_one_without_noise(self, neighbours):
        statement = (
            DPLassoClassifier(n_iter=5, l1_radius=10.0, epsilon=INF).fit(*neighbours[0]).privacy_
        )
        assert not statement.is_private
        assert statement.epsilon == INF
        assert statement.randomness == "none"

    def test_classes_taken_from_the_labels_are_declared_public(self, neighbours):
        statement = DPLassoClassifier(n_iter=5, l1_radius=10.0).fit(*neighbours[0]).privacy_
        assert statement.classes == "taken from y, treated as public"


class TestNoiseNeverRepeats:
    def distinct(self, transcripts):
        assert len(set(transcripts)) == len(transcripts)

    def test_vertices_are_about_equally_likely_here(self):
        X, y = noise_data()
        statement = DPLassoClassifier(n_iter=20).fit(X, y).privacy_
        gradient = np.append(X.T @ (0.5 - y), (0.5 - y).sum())
        # Later gradients are no larger than the number of a column's rows.
        largest = max(np.abs(gradient).max(), X.sum(axis=0).max(), X.shape[0])
        likeliest = np.exp(statement.eps0 / 2 * largest) / (2 * gradient.size)
        assert likeliest < 0.2

    def test_fits_of_one_estimator(self):
        model = DPLassoClassifier(n_iter=20)
        self.distinct([fingerprint(model.fit(*noise_data())) for _ in range(5)])

    def test_clones_and_pickles(self):
        model = DPLassoClassifier(n_iter=20).fit(*noise_data())
        copies = [model, clone(model), pickle.loads(pickle.dumps(model))]
        self.distinct([fingerprint(model), *(transcript_of(copy) for copy in copies)])
        blob = pickle.dumps(model)
        refits = [pickle.loads(blob).fit(*noise_data()) for _ in range(3)]
        self.distinct([fingerprint(model), *map(fingerprint, refits)])

    def test_threads(self):
        with ThreadPoolExecutor(4) as pool:
            self.distinct(list(pool.map(transcript_of, [DPLassoClassifier(n_iter=20)] * 8)))

    def test_processes(self):
        found = Parallel(n_jobs=2, backend="loky")(
            delayed(transcript_of)(DPLassoClassifier(n_iter=20)) for _ in range(6)
        )
        found += Parallel(n_jobs=2, backend="loky")(
            delayed(transcript_of_default)() for _ in range(2)
        )
        self.distinct(found)

    def test_grid_search(self):
        search = GridSearchCV(
            DPLassoClassifier(n_iter=20),
            {"l1_radius": [5.0, 5.0, 10.0], "fit_intercept": [True]},
            scoring=fingerprint,
            cv=3,
            n_jobs=2,
        ).fit(*noise_data())
        scores = [search.cv_results_[f"split{i}_test_score"] for i in range(3)]
        self.distinct([*np.concatenate(scores), fingerprint(search.best_estimator_)])

    @pytest.mark.parametrize("seed", [0, np.int64(3)])
    def test_a_seed_repeats_exactly(self, seed):
        model = DPLassoClassifier(n_iter=20, random_state=seed)
        first = fingerprint(model.fit(*noise_data()))
        assert fingerprint(model.fit(*noise_data())) == first
        assert fingerprint(clone(model).fit(*noise_data())) == first
        model.set_params(random_state=int(seed) + 1)
        assert fingerprint(model.fit(*noise_data())) != first

    def test_a_generator_moves_on(self):
        model = DPLassoClassifier(n_iter=20, random_state=np.random.default_rng(0))
        self.distinct([fingerprint(model.fit(*noise_data())) for _ in range(3)])


def test_no_global_state_is_touched():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    one = fingerprint(DPLassoClassifier(n_iter=20).fit(*noise_data()))
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert fingerprint(DPLassoClassifier(n_iter=20).fit(*noise_data())) != one
