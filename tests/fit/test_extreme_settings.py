"""Whatever settings are accepted: nothing that is released is other than finite, and one record
moves every column gradient by no more than the sensitivity says."""

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import DPLassoClassifier
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.privacy.randomness import random_stream
from dplasso.runtime.threads import ONE_THREAD
from parts import TWO, method_of, records_of

# A record's largest contribution: C B S.
LARGEST = 2**32
N_STEPS = 8


def powers(lowest, highest):
    """Return numbers of every magnitude."""
    return st.floats(math.log10(lowest), math.log10(highest)).map(lambda power: 10.0**power)


accepted = st.fixed_dictionaries(
    {
        "l1_radius": powers(1e-300, 1e250),
        "feature_bound": powers(1e-100, 1e100),
        "epsilon": powers(1e-6, 1e3),
        "delta": powers(1e-9, 0.5),
        "drift_tol": st.one_of(st.none(), st.just("auto"), powers(1e-300, 1e300), st.just(0.0)),
        "neighbors": st.sampled_from(["add-remove", "replace-one"]),
        "solver": st.sampled_from(["sparse", "standard"]),
        "fit_intercept": st.booleans(),
    }
).filter(lambda options: options["l1_radius"] * options["feature_bound"] <= 1e100)


def data(largest):
    rng = np.random.default_rng(7)
    X = sp.random_array((9, 5), density=0.6, format="csr", rng=rng).astype(np.float64)
    X.data = rng.choice([-1.0, 1.0], X.data.size) * rng.choice([1.0, 1e-3, 1e30], X.data.size)
    X.data *= largest
    return X, rng.integers(0, 2, 9)


@settings(max_examples=60, deadline=None)
@given(options=accepted, seed=st.integers(0, 2**16))
def test_one_record_moves_no_gradient_by_more_than_its_bound(options, seed):
    method = method_of(DPLassoClassifier(n_iter=N_STEPS, **options))
    mechanism = method.mechanism(TWO, 1, 5)
    assert math.isfinite(mechanism.exponent_scale)
    assert mechanism.epsilon_spent <= options["epsilon"]
    X, y = data(min(options["feature_bound"], 1e150))
    rng = np.random.default_rng(seed)
    taken = Transcript(
        rng.integers(0, 5 + options["fit_intercept"], N_STEPS),
        rng.choice(np.array([-1, 1], dtype=np.int8), N_STEPS),
    )

    def gradients(rows):
        given = TWO, mechanism, records_of(X[rows], y[rows]), random_stream(), ONE_THREAD
        solver = method.solver(*given, replay=taken)
        found = [solver.state.alpha.copy()]
        for step in range(1, N_STEPS + 1):
            solver.advance(step, step)
            found.append(solver.state.alpha.copy())
        coefficients, intercept = solver.release().coefficients()
        assert np.isfinite(coefficients.data).all()
        assert np.isfinite(intercept).all()
        return np.array(found)

    everyone, one_less = gradients(np.arange(9)), gradients(np.arange(8))
    assert np.abs(everyone - one_less).max() <= LARGEST
