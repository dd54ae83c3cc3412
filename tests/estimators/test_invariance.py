"""What must not change the result changes not a bit of it, and nothing of the caller's changes."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso import DPLassoClassifier
from dplasso.frank_wolfe.solve import solve
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.randomness import random_stream
from dplasso.selection.replay import replay_state
from frank_wolfe.cases import dense_rows, some_labels, with_design
from parts import method_of, problem_of, selector_of

INF = float("inf")
EXACT = {"epsilon": INF, "n_iter": 30, "l1_radius": 10.0, "drift_tol": 0.0}


class TestSameResult:
    """What must not change the result, changes not a bit of it."""

    def final(self, model, X, y, transcript=None):
        """Return the solver's last state at a given transcript."""
        model.fit(X, y)
        labels = (np.asarray(y) == model.classes_[1]).astype(np.int8)
        problem = problem_of(model, X, labels)
        taken = transcript or model.transcript_
        selector = selector_of(model, problem)
        options = {"drift_tol": method_of(model).drift_tol, "prefix": taken}
        return solve(problem, selector, random_stream(0), **options).state

    def variants(self, X):
        wide = sp.csr_array(X)
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        return {
            "csr": sp.csr_array(X),
            "csc": sp.csc_array(X),
            "csr_matrix": sp.csr_matrix(X),
            "csc_matrix": sp.csc_matrix(X),
            "coo": sp.coo_array(X),
            "lil": sp.lil_array(X),
            "int64 indices": wide,
            "float64": sp.csr_array(X.astype(np.float64)),
            "dense": X,
            "dense float64": X.astype(np.float64),
            "fortran": np.asfortranarray(X),
            "list": X.tolist(),
            "unsorted": self.shuffled_entries(X),
            "duplicates": self.split_entries(X),
            "spare room": self.spare_room(X),
        }

    def shuffled_entries(self, X):
        csr, rng = sp.csr_array(X), np.random.default_rng(0)
        order = np.concatenate(
            [rng.permutation(np.arange(a, b)) for a, b in pairwise(csr.indptr)]
        ).astype(int)
        return sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=X.shape)

    def split_entries(self, X):
        """Every entry twice, half each (halves are exact): clipped only when summed."""
        csr = sp.csr_array(X)
        return sp.csr_array(
            (np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), shape=X.shape
        )

    def spare_room(self, X):
        csr = sp.csr_array(X)
        csr.data, csr.indices = np.append(csr.data, np.float32(7)), np.append(csr.indices, 0)
        return csr

    @pytest.mark.parametrize("kind", ["mixed", "binary"])
    @pytest.mark.parametrize("options", [{"epsilon": 1.0}, {"epsilon": INF}])
    def test_layouts(self, kind, options):
        X, y = dense_rows(30, 12, 3), some_labels(30, 3)
        X[4], X[:, 5] = 0.0, 0.0
        if kind == "binary":
            X = (X != 0).astype(np.float32)
        model = DPLassoClassifier(
            random_state=11, n_iter=40, l1_radius=10.0, feature_bound=1.2, **options
        )
        expected = model.fit(X, y).transcript_
        margins = model.decision_function(X)
        state = self.final(model, sp.csr_array(X), y)
        for name, variant in self.variants(X).items():
            assert model.fit(variant, y).transcript_ == expected, name
            np.testing.assert_array_equal(model.decision_function(variant), margins, name)
            if name not in ("coo", "lil", "list"):
                other = self.final(model, variant, y, expected)
                np.testing.assert_array_equal(other.alpha, state.alpha, name)
                np.testing.assert_array_equal(other.gradient, state.gradient, name)

    def test_stored_values_make_no_difference(self):
        X = (dense_rows(30, 12, 4) != 0).astype(np.float32)
        y = some_labels(30, 4)
        model = DPLassoClassifier(n_iter=20, l1_radius=10.0)
        vertex = np.random.default_rng(0).integers(0, 13, 20)
        taken = Transcript(vertex, np.where(vertex % 2, 1, -1).astype(np.int8))
        states = []
        for stored in (False, True):
            problem = problem_of(model, sp.csr_array(X), y)
            assert problem.design.rows.values.size == problem.design.columns.values.size == 0
            if stored:
                ones = np.ones(problem.design.rows.indices.size, dtype=np.float32)
                problem = with_design(
                    problem,
                    rows=problem.design.rows._replace(values=ones, constant=0.0),
                    columns=problem.design.columns._replace(values=ones, constant=0.0),
                )
            selector = replay_state(taken.vertex, taken.sign)
            states.append(solve(problem, selector, random_stream(0), drift_tol=1e-3).state)
        for name in ("alpha", "margin", "gradient"):
            np.testing.assert_array_equal(*(getattr(state, name) for state in states))

    @pytest.mark.parametrize("kind", ["binary", "mixed"])
    def test_explicit_zeros(self, kind):
        X, y = dense_rows(30, 12, 5), some_labels(30, 5)
        if kind == "binary":
            X = (X != 0).astype(np.float32)
        full = sp.csr_array(
            (X.ravel(), np.tile(np.arange(12), 30), np.arange(0, 361, 12)), shape=X.shape
        )
        assert full.nnz == 360
        stale = [EXACT | {"drift_tol": tolerance} for tolerance in (0.01, 0.1, None)]
        for options in (EXACT, EXACT | {"solver": "standard"}, *stale):
            model = DPLassoClassifier(**options)
            assert model.fit(full, y).transcript_ == model.fit(X, y).transcript_

    def test_shuffled_rows(self):
        X, y = dense_rows(30, 12, 6), some_labels(30, 6)
        order = np.random.default_rng(0).permutation(30)
        model = DPLassoClassifier(random_state=1, n_iter=40, l1_radius=10.0)
        one = self.final(model, X, y)
        taken = model.transcript_
        other = self.final(model, X[order], y[order], taken)
        np.testing.assert_array_equal(one.alpha, other.alpha)
        np.testing.assert_array_equal(one.gradient[order], other.gradient)
        np.testing.assert_array_equal(one.margin[order], other.margin)

    @pytest.mark.parametrize("n_columns", [12, 200_000])
    def test_threads(self, n_columns):
        # The wide one is transposed in several blocks of columns.
        X = sp.csr_array((30, n_columns), dtype=np.float32).tolil()
        X[:, :: -n_columns // 12] = dense_rows(30, 12, 7)
        X, y = X.tocsr(), some_labels(30, 7)
        runs = [
            DPLassoClassifier(random_state=1, n_iter=40, l1_radius=10.0, n_jobs=n)
            .fit(X, y)
            .transcript_
            for n in (None, 1, 2, 3, -1, 10**12)
        ]
        assert all(run == runs[0] for run in runs)

    @pytest.mark.parametrize("options", [{"selector": "noisy-max", "epsilon": 1.0}, EXACT])
    def test_solvers(self, options):
        X, y = dense_rows(30, 12, 8), some_labels(30, 8)
        options = options | {"drift_tol": 0.0, "random_state": 2, "n_iter": 50}
        runs = [
            DPLassoClassifier(solver=solver, **options).fit(layout(X), y).transcript_
            for solver in ("sparse", "standard")
            for layout in (sp.csr_array, sp.csc_array)
        ]
        assert all(run == runs[0] for run in runs)

    @pytest.mark.parametrize("storage", ["read-only", "memory map"])
    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
    def test_arrays_that_cannot_be_written_to(self, storage, kind, tmp_path):
        X, y = kind(dense_rows(30, 12, 9)), some_labels(30, 9)
        expected = DPLassoClassifier(random_state=1).fit(X, y).transcript_
        parts = []
        for name in ("data", "indices", "indptr"):
            part = getattr(X, name).copy()
            if storage == "memory map":
                np.save(tmp_path / f"{name}.npy", part)
                part = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
            part.flags.writeable = False
            parts.append(part)
        frozen = kind(tuple(parts), shape=X.shape)
        assert not frozen.data.flags.writeable
        y.flags.writeable = False
        assert DPLassoClassifier(random_state=1).fit(frozen, y).transcript_ == expected


class TestNothingOfTheCallerChanges:
    @pytest.mark.parametrize("layout", ["csr", "unsorted", "duplicates", "csc", "dense"])
    @pytest.mark.parametrize("solver", ["sparse", "standard"])
    def test_data_and_parameters(self, layout, solver):
        dense = dense_rows(30, 12, 10, spread=4.0)
        X = TestSameResult().variants(dense)[layout]
        y = some_labels(30, 10).astype(np.int64)
        declared = np.array([0, 1])
        parts = [X] if layout == "dense" else [X.data, X.indices, X.indptr]
        parts += [y, declared]
        before = [part.tobytes() for part in parts]
        model = DPLassoClassifier(classes=declared, solver=solver)
        params = model.get_params()
        model.fit(X, y).predict_proba(X)
        assert [part.tobytes() for part in parts] == before
        if layout != "dense":
            # Not even put in another place.
            assert [parts[0] is X.data, parts[1] is X.indices, parts[2] is X.indptr] == [True] * 3
        assert model.get_params() == params
        assert model.classes is declared

    def test_an_integer_seed_is_not_used_up(self):
        X, y = dense_rows(30, 12, 0), some_labels(30, 0)
        model = DPLassoClassifier(random_state=4)
        assert model.fit(X, y).transcript_ == model.fit(X, y).transcript_
