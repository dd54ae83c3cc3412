"""What a fit draws first it draws when it is paid for, keeps at once, and never draws again."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from checkpoint.conftest import Killed
from dplasso import (
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    PrivateSearch,
    private_score,
)
from dplasso.checkpoint import session
from dplasso.checkpoint.session import fit_with_checkpoints, read_checkpoint, resume_fit
from dplasso.cluster import InProcessEngine, ThreadEngine
from dplasso.errors import DataError
from dplasso.fit import run as fit_run
from dplasso.fit import stages
from dplasso.gradient_descent import measures, run
from dplasso.ledger import charging, create_ledger, read_budgets
from dplasso.model.release import digest_of
from dplasso.model.staged import StagedRelease
from dplasso.privacy.randomness import WORDS_PER_BLOCK, random_stream
from dplasso.tuning import scores, search

BOUNDS = {"target_bounds": (0.0, 1.0)}
FITS = {
    "lasso": DPLassoClassifier(20.0, n_iter=6),
    "lasso without refit": DPLassoClassifier(20.0, n_iter=6, refit=0.0),
    "lasso, all columns": DPLassoClassifier(20.0),
    "lasso of numbers": DPLasso(20.0, n_iter=6, **BOUNDS),
    "vertices": DPLassoClassifier(1.0, n_iter=6, l1_radius=5.0),
    "logistic": DPLogisticRegression(2.0, n_iter=12),
    "short list": DPLogisticRegression(2.0, n_iter=12, max_weights=2),
    "linear": DPLinearRegression(2.0, n_iter=12, **BOUNDS),
}
LAYOUTS = {"memory": None, "partitions": InProcessEngine(), "threads": ThreadEngine(threads=2)}
# All fits in memory, and one of each solver in parts.
CASES = [f"{name}-memory" for name in FITS]
CASES += ["lasso-partitions", "vertices-partitions", "short list-partitions", "lasso-threads"]
COUNTING = [case for case in CASES if "vertices" not in case and "threads" not in case]


def records(layout="memory"):
    rng = np.random.default_rng(5)
    X = sp.random_array((90, 40), density=0.2, format="csr", rng=rng, dtype=np.float32)
    y = (rng.random(90) < 0.4).astype(np.int64)
    if layout == "memory":
        return X, y
    edges = [0, 20, 55, 90]
    cuts = [slice(*pair) for pair in pairwise(edges)]
    return [X[cut] for cut in cuts], [y[cut] for cut in cuts]


def case_of(case, **options):
    """Return the estimator, the data and the engine of a case."""
    name, layout = case.split("-")
    return clone(FITS[name]).set_params(**options), records(layout), LAYOUTS[layout]


def words_drawn(stream):
    """Return how many random words a stream has given."""
    blocks = int(stream.state[12]) + 2**32 * int(stream.state[13])
    return blocks * WORDS_PER_BLOCK + int(stream.position[0]) - stream.words.size


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "team.ledger"
    create_ledger(path, 30.0, 1e-4)
    return path


@pytest.fixture
def at_the_charge(monkeypatch):
    """Return the words that were drawn when the ledger was charged, and the streams."""
    streams, drawn, reserve = [], [], charging.reserve

    def stream(*given):
        streams.append(random_stream(*given))
        return streams[-1]

    def charged(*given, **options):
        drawn.append(sum(map(words_drawn, streams)))
        return reserve(*given, **options)

    for holder in (fit_run, search, scores):
        monkeypatch.setattr(holder, "random_stream", stream)
    monkeypatch.setattr(charging, "reserve", charged)
    return drawn, streams


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_drawn_before_the_charge(case, ledger, at_the_charge):
    drawn, streams = at_the_charge
    model, data, engine = case_of(case, ledger=ledger)
    model.fit(*data, engine=engine)
    assert drawn == [0]
    assert words_drawn(streams[0]) > 0


def test_a_score_draws_nothing_before_the_charge(ledger, at_the_charge):
    drawn, streams = at_the_charge
    model = DPLogisticRegression(2.0, n_iter=5).fit(*records())
    del streams[:]
    private_score(model, *records(), 1.0, ledger=ledger)
    assert drawn == [0]
    assert words_drawn(streams[0]) > 0


def test_a_search_draws_nothing_but_its_parts_before_the_charge(ledger, at_the_charge, monkeypatch):
    """Parts that cannot be written are refused before; who is in which never leaves."""
    drawn, streams = at_the_charge
    divided = []
    original = search.draw_held_out

    def draw(*given):
        found = original(*given)
        divided.append(sum(map(words_drawn, streams)))
        return found

    monkeypatch.setattr(search, "draw_held_out", draw)
    tried = PrivateSearch(
        DPLogisticRegression(n_iter=5),
        {"max_weights": [None, 2]},
        2.0,
        law="logarithmic",
        tries=3,
        ledger=ledger,
    )
    tried.fit(*records())
    assert drawn == divided
    assert words_drawn(streams[0]) > drawn[0]


def killed_when_counted(model, data, path, monkeypatch, engine):
    """Fit until the counts are in the checkpoint; nothing may be computed from them before."""
    original = session.write_checkpoint

    def write(checkpoint, *given, **options):
        original(checkpoint, *given, **options)
        if counts_of(checkpoint.release) is not None:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(session, "write_checkpoint", write)
        patch.setattr(run.NoisyGradientDescent, "advance", lambda *_: pytest.fail("too early"))
        patch.setattr(stages.StagedLasso, "advance", lambda *_: pytest.fail("too early"))
        patch.setattr(charging, "finish", lambda *_, **__: True)
        with pytest.raises(Killed):
            fit_with_checkpoints(model, *data, path, seconds=1e9, engine=engine)


def counts_of(release):
    counts = release.counts if isinstance(release, StagedRelease) else release.numbers[:1]
    return counts.tolist() if counts.any() else None


@pytest.mark.parametrize("case", COUNTING)
def test_killed_after_the_count_it_never_counts_again(case, ledger, tmp_path, monkeypatch):
    path, (model, data, engine) = tmp_path / "kept", case_of(case, ledger=ledger)
    killed_when_counted(model, data, path, monkeypatch, engine)
    kept = read_checkpoint(path).release
    assert len(kept) == 0
    assert kept.agrees_with(kept)
    for module in (measures, stages):
        monkeypatch.setattr(module, "noisy_counts", lambda *_: pytest.fail("counted again"))
    resume_fit(model, *data, path, engine=engine)
    again = resume_fit(model, *data, path, engine=engine).model_.release
    assert digest_of(again) == digest_of(read_checkpoint(path).release)
    if isinstance(again, StagedRelease):
        assert again.counts.tolist() == counts_of(kept)
    (entry,) = read_budgets(ledger)[0].entries
    assert entry.release == digest_of(again)


@pytest.mark.parametrize("case", COUNTING)
def test_killed_after_the_count_a_seeded_fit_is_the_same(case, tmp_path, monkeypatch):
    path, (model, data, engine) = tmp_path / "kept", case_of(case, random_state=4)
    whole = digest_of(model.fit(*data, engine=engine).model_.release)
    killed_when_counted(model, data, path, monkeypatch, engine)
    content = path.read_bytes()
    # Another seed is another count.
    with pytest.raises(ValueError, match="different steps from those of this fit"):
        resume_fit(model.set_params(random_state=5), *data, path, engine=engine)
    assert path.read_bytes() == content
    again = resume_fit(model.set_params(random_state=4), *data, path, engine=engine)
    assert digest_of(again.model_.release) == whole


@pytest.mark.parametrize("name", ["standard", "big-little"])
def test_what_partitions_cannot_do_is_refused_before_the_charge(name, ledger):
    option = {"solver": name} if name == "standard" else {"selector": name}
    model = DPLassoClassifier(20.0, n_iter=6, ledger=ledger, **option)
    with pytest.raises(ValueError, match="runs in one process"):
        model.fit(*records("partitions"), engine=InProcessEngine())
    assert read_budgets(ledger)[0].entries == ()


@pytest.mark.parametrize("name", FITS)
def test_a_damaged_matrix_is_refused_before_the_charge(name, ledger):
    X, y = records()
    X.indices = X.indices.copy()
    X.indices[4] = 999
    with pytest.raises((ValueError, DataError), match=r"index|column"):
        clone(FITS[name]).set_params(ledger=ledger).fit(X, y)
    assert read_budgets(ledger)[0].entries == ()
