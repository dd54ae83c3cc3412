"""The data, the file and the kill that the tests of checkpoints share."""

import numpy as np
import pytest
import scipy.sparse as sp

from dplasso.checkpoint import session
from dplasso.runtime import chunks


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
    monkeypatch.setattr(chunks, "_CHUNK_SECONDS", 0.0)


@pytest.fixture
def killed_after(monkeypatch):
    """Run until `count` checkpoints have been written, the first one of no steps included."""

    def run(count, estimator, data, path, *, resume=False):
        written = 0
        original = session.write_checkpoint

        def write(*arguments, **options):
            nonlocal written
            original(*arguments, **options)
            written += 1
            if written == count:
                raise Killed

        go = session.resume_fit if resume else session.fit_with_checkpoints
        with monkeypatch.context() as patch:
            patch.setattr(session, "write_checkpoint", write)
            with pytest.raises(Killed):
                go(estimator, *data, path, seconds=0)
        assert not hasattr(estimator, "coef_")

    return run
