"""The exponential and logarithm of residuals: exact to the last places, monotone, the same bits."""

import json
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba import njit

from dplasso.losses import exponential as module
from dplasso.losses.exponential import exponential, logarithm
from dplasso.losses.logistic import sigma
from processes import python

RNG = np.random.default_rng(0)
ARGUMENTS = np.concatenate(
    [RNG.uniform(-708, 709, 2000), RNG.normal(0, 1, 2000), RNG.normal(0, 1e-9, 200)]
)


def units_off(found, exact):
    """Return by how many units in the last place of the exact number another one is off."""
    return float(abs(Decimal(found) - exact)) / np.spacing(abs(float(exact)))


def test_against_the_definition_in_forty_digits():
    with localcontext() as context:
        context.prec = 40
        exact = [Decimal(x).exp() for x in ARGUMENTS]
        assert max(map(units_off, map(exponential, ARGUMENTS), exact)) < 0.52
        rises = [1 / (1 + Decimal(-x).exp()) for x in ARGUMENTS]
        assert max(map(units_off, map(sigma, ARGUMENTS), rises)) < 2.5
        for power in exact:
            found, wanted = logarithm(float(power)), Decimal(float(power)).ln()
            assert units_off(found, wanted) < 2 or abs(Decimal(found) - wanted) < 1.2e-16
    assert (exponential(0.0), sigma(0.0), logarithm(1.0)) == (1.0, 0.5, 0.0)
    ends = [exponential(x) for x in (-np.inf, -708.1, 709.1, np.inf)]
    assert ends == [0.0, 0.0, np.inf, np.inf]
    assert np.isnan(exponential(np.nan))


@njit(cache=True)
def _falls(first, last, below, per_unit):
    """Count the places where k changes and the function falls; and those looked at."""
    found, places = 0, 0
    for k in range(first, last):
        low, high = (k - 1.0) / per_unit, (k + 1.0) / per_unit
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            # As `exponential` rounds.
            if (middle * per_unit - below) + 1.5 * 2.0**52 >= 1.5 * 2.0**52 + k:
                high = middle
            else:
                low = middle
        found += exponential(low) > exponential(high)
        found += sigma(low) > sigma(high)
        places += np.nextafter(low, np.inf) == high
    return found, places


def test_it_never_falls():
    """Between two such places every operation grows with the argument."""
    last = int(708 * module._STEPS_PER_UNIT)
    falls, places = _falls(-last, last, module._BELOW, module._STEPS_PER_UNIT)
    assert (falls, places) == (0, 2 * last)
    x = np.sort(np.concatenate([ARGUMENTS, np.nextafter(ARGUMENTS, np.inf)]))
    for function in (exponential, sigma):
        assert (np.diff([function(argument) for argument in x]) >= 0.0).all()


# A worker's answers in both families, and bits that a machine's own functions have: those of
# numba's compiled code and of the C library.
WORKER = """
import hashlib, json, math, sys
import numpy as np
import scipy.sparse as sp
from dplasso.cluster.worker import Partition, SumSteps, Worker
from dplasso.fit.task import Binary
from dplasso.frank_wolfe.round_part import RoundSteps
from dplasso.losses.multinomial import ClippedMultinomial
from dplasso.losses.exponential import logarithm
from dplasso.losses.logistic import Logistic, sigma
from dplasso.matrix.scaling import Scaling

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

rng, found = np.random.default_rng(0), {}
x = rng.normal(0.0, 4.0, 20_000)
found["sigma"] = digest([sigma(v) for v in x], [logarithm(v) for v in np.exp2(np.rint(x)) * 1.37])
X = sp.csr_array(rng.normal(size=(800, 30)) * (rng.random((800, 30)) < 0.4))
y = (X[:, [0]].toarray()[:, 0] > 0).astype(int)
worker = Worker(Partition("p", X=X, y=y))
worker.describe()
worker.encode(Binary(np.arange(2)))
# Units of 2^-52 show the last bits of every residual.
scaling = Scaling(np.zeros(0, dtype=np.int64), 0.1, None)
losses = {"logistic": Logistic(1.0), "classes": ClippedMultinomial(1.0, np.zeros(2))}
for name, loss in losses.items():
    steps = SumSteps(loss, "part", (scaling, 2.0**51, None))
    worker.begin_sums(steps)
    weights = rng.normal(0.0, 2.0, 31 * loss.n_outputs)
    found[name] = digest(worker.sums(weights))
steps = RoundSteps(Logistic(0.75, 0.3), 1.0, 30, 29, 0.5, 32)
up = np.ones(1, dtype=np.int8)
answers = [worker.begin_vertices(steps)]
for step in range(1, 30):
    moved = worker.move(step, np.array([step % 7]), up)
    answers += [np.asarray(a) for a in moved[:2] if a is not None]
found["vertices"] = digest(*answers)
found["of the machine"] = digest([math.exp(v) for v in x])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_machine_without_fused_multiply_add_has_the_same_bits(tmp_path):
    """On x86 with glibc the library's own exponential differs, or nothing would be shown."""
    hidden = "-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"
    plain = {
        "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={hidden}",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    one, other = (json.loads(python("-c", WORKER, **extra).stdout) for extra in ({}, plain))
    assert one.pop("of the machine") != other.pop("of the machine")
    assert one == other
