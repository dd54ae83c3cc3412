"""No two fits, tasks, processes or copies ever share a stream of random words.

False alarms: two independent transcripts agree with probability below 1e-40, as in
`tests/estimators/test_privacy.py`.
"""

import copy
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from dplasso import DPFrankWolfeClassifier
from dplasso.privacy.randomness import RandomStream, random_stream
from estimators.workers import noise_data, transcript_of_default

TASKS = 6
# Newer Pythons warn where a process with threads forks.
FORKS = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def distinct(found):
    assert len(set(found)) == len(found) > 1


@FORKS
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes(method):
    # The parent has fitted before, so anything it holds is there to be inherited.
    mine = transcript_of_default()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        fits = [pool.submit(transcript_of_default) for _ in range(TASKS)]
        distinct([mine, transcript_of_default(), *(fit.result() for fit in fits)])


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_cannot_be_copied(copied):
    with pytest.raises(TypeError, match="would repeat"):
        copied(random_stream(None))


def streams_within(value, seen=None):
    """Count the random streams that can be reached from a value."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, str | bytes | np.ndarray):
        return 0
    seen.add(id(value))
    if isinstance(value, RandomStream):
        return 1
    if type(value).__module__.startswith("dplasso") and hasattr(value, "__dict__"):
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    parts = value if isinstance(value, list | tuple | set) else ()
    return sum(streams_within(part, seen) for part in parts)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_fitted_estimator_holds_no_stream(seed):
    model = DPFrankWolfeClassifier(n_iter=5, random_state=seed).fit(*noise_data())
    assert streams_within(model) == 0
    for name, module in list(sys.modules.items()):
        if name.startswith("dplasso"):
            assert streams_within(dict(vars(module))) == 0, name
    model.kept = [random_stream(None)]
    assert streams_within(model) == 1


def test_all_256_bits_come_from_the_system():
    keys = np.array([random_stream(None).state[4:12] for _ in range(64)])
    # Two of 64 words agree with probability 5e-7, thrice with 1e-19.
    assert all(np.unique(word).size > 61 for word in keys.T)
    # Two of all 512 agree with probability 3e-5, four pairs with 1e-18.
    assert np.unique(keys).size > 508
    # Each of 256 bits is both 0 and 1 among 64 keys but with probability 3e-17.
    bits = np.unpackbits(keys.astype("<u4").view(np.uint8), axis=1)
    assert bits.shape == (64, 256)
    assert bits.any(axis=0).all()
    assert not bits.all(axis=0).any()
