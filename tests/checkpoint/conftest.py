"""The data, the file and the kill that the tests of checkpoints share."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.checkpoint import resume_fit, session
from dplasso.errors import CheckpointError
from dplasso.ledger import charging
from dplasso.runtime import progress

WRITES = (session, "write_checkpoint")


class Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(3)
    X = sp.random_array((80, 40), density=0.2, format="csr", rng=rng, dtype=np.float32)
    return X, np.where(rng.random(80) < 0.5, "no", "yes")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture(autouse=True)
def a_step_a_chunk(monkeypatch):
    monkeypatch.setattr(progress, "_CHUNK_SECONDS", 0.0)


def refuse(estimator, data, path, words, error=CheckpointError):
    """Resume a fit, which is refused in one sentence: nothing is drawn, charged or written."""
    content = path.read_bytes() if path.exists() else None
    with pytest.raises(error) as caught:
        resume_fit(estimator, *data, path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.exists() else None) == content
    assert not hasattr(estimator, "coef_")
    return str(caught.value)


@pytest.fixture
def killed(monkeypatch):
    """Fit, or resume, until the `count`-th call of a function, by default of what writes.

    The first checkpoint written has no steps. A killed process notes no failure in a ledger.
    """

    def run(estimator, data, path, count, *, at=WRITES, after=True):
        holder, name = at
        original, real, left = getattr(holder, name), charging.finish, count

        def call(*arguments, **options):
            nonlocal left
            left -= 1
            if left == 0 and not after:
                raise Killed
            result = original(*arguments, **options)
            if left == 0:
                raise Killed
            return result

        def finish(*arguments, failed=False, **options):
            return None if failed else real(*arguments, **options)

        go = session.resume_fit if path.exists() else session.fit_with_checkpoints
        with monkeypatch.context() as patch:
            patch.setattr(charging, "finish", finish)
            patch.setattr(holder, name, call)
            with pytest.raises(Killed):
                go(estimator, *data, path, seconds=0)
        assert not hasattr(estimator, "coef_")

    return run
