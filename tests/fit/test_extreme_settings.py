"""Whatever settings are accepted: nothing that is released is other than finite, and one record
moves every statistic by no more than the sensitivity says."""

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dplasso import DPFrankWolfeClassifier
from recorder import compare


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
        # Nothing is counted, which would need a delta for its own rounding.
        "fit_intercept": st.just(False),
        "n_records": st.just(8),
    }
).filter(lambda options: options["l1_radius"] * options["feature_bound"] <= 1e100)


@settings(max_examples=40, deadline=None)
@given(options=accepted, seed=st.integers(0, 2**16))
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
    compared = compare(fit, range(8), other)
    assert compared.violations == ()
    assert compared.statistics == 8
