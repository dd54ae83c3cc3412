"""The kernels are plain Python too: without a compiler fits of every loop take the same steps."""

import json
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import scipy.sparse as sp

from dplasso import DPFrankWolfeClassifier, PrivacyLeakWarning

VERTICES = {"n_iter": 12, "l1_radius": 10.0, "epsilon": 50.0, "random_state": 3}
FITS = {
    "bucket": {},
    "bucket, tolerant": {"drift_tol": 0.05, "neighbors": "replace-one"},
    "bucket, stale": {"drift_tol": None, "fit_intercept": False},
    "big-little": {"selector": "big-little"},
    "noisy-max": {"selector": "noisy-max"},
    "standard": {"solver": "standard"},
    "paper": {"mechanism": "paper"},
    "plain": {"epsilon": math.inf, "drift_tol": 0.0},
    "plain, heap": {"epsilon": math.inf, "selector": "heap"},
}


def transcripts():
    """Return the signed coordinates, from 1, that every fit takes."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 12)) < 0.4, rng.normal(0, 1, (30, 12)), 0).astype(np.float32)
    X, y = sp.csr_array(X), rng.integers(0, 2, 30)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        for name, options in FITS.items():
            taken = DPFrankWolfeClassifier(**VERTICES | options).fit(X, y).transcript_
            found[name] = ((taken.vertex + 1) * taken.sign).tolist()
    return found


def test_without_the_compiler_every_fit_takes_the_same_steps():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:Caution:RuntimeWarning", __file__],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    interpreted = json.loads(done.stdout)
    assert interpreted == transcripts()
    # Fits that differ do differ: the comparison is not one of constants.
    assert interpreted["bucket"] != interpreted["noisy-max"] != interpreted["plain"]


if __name__ == "__main__":
    # Interpreted, the generator's 32-bit words wrap around as they shall, and numpy says so.
    with np.errstate(over="ignore"):
        print(json.dumps(transcripts()))
