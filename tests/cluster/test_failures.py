"""Workers that are lost: every answer is in a sum once, and the fit goes on."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from cluster.cases import MODELS, Killer, Watched, cut, records, released
from dplasso import DataError, DPFrankWolfeClassifier, Ledger
from dplasso.checkpoint import fit_with_checkpoints, read_checkpoint, resume_fit
from dplasso.cluster import InProcessEngine, ThreadEngine, partitions
from dplasso.cluster.engines import Held, WorkerLost
from dplasso.cluster.ray_engine import RayWorker
from dplasso.cluster.worker import Partition, Worker
from dplasso.errors import ClusterError
from dplasso.fit.task import Binary
from dplasso.frank_wolfe.round_part import Changes, RoundSteps
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.ledger import create_ledger
from dplasso.losses.logistic import Logistic
from dplasso.phases.releases import Counted, Drawn


@pytest.mark.parametrize("name", ["strong", "dense"])
def test_a_worker_may_be_lost_at_any_call(name):
    X, y = records(120, 410)
    model, parts = MODELS[name], cut(X, y, 2)
    expected, calm = released(model.fit(X, y)), Killer()
    assert released(model.fit(*parts, engine=calm)) == expected
    methods = [call[0] for call in calm.calls]
    some = {methods.index(method) for method in methods}
    some |= set(range(0, len(methods), 23)) | {len(methods) - 1}
    for number in sorted(some):
        for before in (True, False):
            # And the one that replaces it is lost too, on its way.
            engine = Killer(at=(number, number + 5), before=before)
            assert released(model.fit(*parts, engine=engine)) == expected, methods[number]
            assert len(engine.calls) > len(methods)


def test_what_is_lost_is_told(capsys):
    MODELS["dense"].fit(*cut(*records(120, 60), 2), engine=Killer(at=(30,)))
    assert capsys.readouterr().err.splitlines() == [
        "the worker of partition 1 was lost (it was killed) and is being replaced",
        "the worker of partition 1 was replaced",
    ]


def test_a_partition_that_cannot_be_had_back_ends_the_fit(tmp_path):
    X, y = records(120, 410)
    ledger, path = tmp_path / "l.ledger", tmp_path / "c.npz"
    create_ledger(ledger, epsilon=50.0, delta=1e-5, dataset="visits")
    options = {"classes": [0, 1], "ledger": Ledger(ledger, dataset="visits")}
    model, parts = clone_of("strong", max_weights=60, **options), cut(X, y, 2)
    engine = Killer(at=tuple(range(24, 200)), restarts=2)
    with pytest.raises(
        ClusterError, match=r"partition \d, partition \d, was lost 3 times .*resume"
    ):
        fit_with_checkpoints(model, *parts, path, engine=engine)
    drawn, budget = drawn_in(read_checkpoint(path)), Ledger(ledger).budget()
    assert 5 < drawn.vertex.size < 60
    assert budget.rho > 0
    # Whatever engine goes on, the steps drawn are taken, and nothing is charged again.
    resume_fit(model, *parts, path, engine=ThreadEngine())
    assert len(model.transcript_) == 60
    np.testing.assert_array_equal(model.transcript_.vertex[: drawn.vertex.size], drawn.vertex)
    assert Ledger(ledger).budget().rho == budget.rho


def drawn_in(checkpoint):
    """Return the vertices that a checkpoint holds, of a phase under way or a complete one."""
    state = checkpoint.state
    if "vertex" in state:
        return Transcript(state["vertex"], state["sign"])
    return checkpoint.released.last(Drawn)


def clone_of(name, **options):
    model = type(MODELS[name])(**MODELS[name].get_params())
    return model.set_params(random_state=None, **options)


@pytest.mark.parametrize("name", ["strong", "dense"])
def test_every_step_is_on_the_disk_before_a_worker_hears_of_it(name, tmp_path, monkeypatch):
    """A driver that dies anywhere goes on with all that any worker was told."""
    synced = []
    # Hundreds of them take long.
    monkeypatch.setattr("os.fsync", synced.append)
    X, y = records(120, 410)
    parts = cut(X, y, 2)
    # After 31 calls, sometimes all vertices are drawn.
    for dies_at in (9, 14, 21, 31):
        path, engine = tmp_path / f"{dies_at}.npz", Killer(at=(dies_at,), before=True, restarts=0)
        model = clone_of(name)
        with pytest.raises(ClusterError):
            # Not because it is time to: compiling takes long.
            fit_with_checkpoints(model, *parts, path, engine=engine, seconds=3600.0)
        kept = read_checkpoint(path)
        assert synced
        told = [call for call in engine.calls if call[0] in ("move", "sums", "begin_vertices")]
        for method, *args in told:
            if method == "begin_vertices" and name == "strong":
                assert kept.released.last(Counted).counts.all()
            if method == "move":
                vertices = drawn_in(kept)
                assert vertices is not None
                some = slice(args[0] - 1, args[0] - 1 + args[1].size)
                np.testing.assert_array_equal(vertices.vertex[some], args[1])
                np.testing.assert_array_equal(vertices.sign[some], args[2])
        if told and told[-1][0] == "sums" and "weights" in kept.state:
            weights = told[-1][1]
            assert not weights.any() or np.array_equal(weights, kept.state["weights"])
        resume_fit(model, *parts, path, engine=InProcessEngine())
        last = read_checkpoint(path)
        done = len(kept.released)
        expected = kept.released.arrays()
        found = replace(last.released, entries=last.released.entries[:done]).arrays()
        assert {k: v.tobytes() for k, v in found.items()} == {
            k: v.tobytes() for k, v in expected.items()
        }


def vertex_worker():
    X, y = records(60, 12)
    worker = Worker(Partition("p", X=X, y=y))
    worker.describe()
    worker.encode(Binary(np.arange(2)))
    steps = RoundSteps(Logistic(0.5), 1.0, 12, 20, 0.5, 32)
    return worker, worker.begin_vertices(steps)


def test_a_worker_takes_every_step_once():
    worker, _ = vertex_worker()
    (j, other_j), up, down = np.array([[3], [11]]), np.array([1], np.int8), np.array([-1], np.int8)
    first = worker.move(1, j, up)
    assert worker.move(1, j, up) is first
    for step in (0, 3, 20):
        with pytest.raises(RuntimeError, match=f"p has taken 1 steps and cannot take step {step}"):
            worker.move(step, j, up)
    second = worker.move(2, other_j, down)
    assert worker.move(2, other_j, down) is second
    other, _ = vertex_worker()
    other.catch_up(j, up)
    # It has no reply to a step that it took without adding anything up.
    with pytest.raises(RuntimeError, match="p has taken 1 steps"):
        other.move(1, j, up)
    for mine, theirs in zip(other.move(2, other_j, down), second, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_partition_that_comes_back_with_other_rows_is_refused():
    X, y = records(120, 60)
    parts = cut(X, y, 2)

    class Other(Killer):
        def start(self, partition):
            if len(self.calls) > 20:
                partition = Partition(partition.name, X=partition.X[1:], y=partition.y[1:])
            return super().start(partition)

    with pytest.raises(DataError, match="has changed since the fit began"):
        MODELS["dense"].fit(*parts, engine=Other(at=(30,)))


def test_what_does_not_go_together_is_refused():
    X, y = records(60, 12)
    declared = clone_of("dense", classes=[0, 1])
    foreign = cut(X, np.where(np.arange(60) == 45, 2, y), 2)
    several = ([X[:30], X[30:]], [y[:30], np.stack([y[30:], y[30:]], axis=1)])
    for model, given, error, sentence in (
        (declared, ([X, X], [y, y]), DataError, "a matrix is given twice"),
        (declared, ([X, X[:, :11]], [y, y]), DataError, "partition 2 has 11 columns and partition"),
        (declared, ([X[:30], X[30:]], [y]), DataError, "there are 2 partitions, but labels of 1"),
        (declared, foreign, DataError, "partition 2: y holds a label that is not one of"),
        (declared, several, DataError, r"partition 2: y has the shape \(30, 2\); it needs one"),
        (DPFrankWolfeClassifier(), ([X], [y]), ValueError, "DPFrankWolfeClassifier needs all"),
    ):
        with pytest.raises(error, match=sentence):
            model.fit(*given, engine=InProcessEngine())


SUMMED = ("begin_vertices", "move", "sums")


@dataclass
class Holding(Watched):
    """Its workers hold their dense answers.

    `lost`: numbers of the fetches at which what is held, and its worker, are found to be lost.
    """

    lost: tuple = ()
    fetched: list = field(default_factory=list)

    def answer(self, handle, method, *args):
        found = handle.inside.call(method, *args)()
        sparse = isinstance(found, Changes) and found.coordinates is not None
        if method in SUMMED and not sparse:
            found = self.held(found)
        return lambda: found

    def held(self, answer, depth=0):
        def fetch():
            self.fetched.append(depth)
            if len(self.fetched) in self.lost:
                raise WorkerLost("what it held is gone")
            return answer

        def add(others):
            return self.held(RayWorker.add(None, answer, *(o.reference for o in others)), depth + 1)

        return Held(fetch, add, answer)


@pytest.mark.parametrize("lost", [(3,), (4, 6, 9), (11, 12, 13, 40)])
def test_what_is_lost_while_it_is_added_up_is_asked_for_again(lost):
    X, y = records(120, 60)
    expected, engine = released(MODELS["dense"].fit(X, y)), Holding(lost=lost)
    assert released(MODELS["dense"].fit(*cut(X, y, 6), engine=engine)) == expected
    # The tree is given up, and every answer fetched by itself.
    assert engine.fetched.count(0) >= 6


def test_every_answer_is_in_the_sum_once():
    for count in range(1, 40):
        engine = Holding()
        parts = [np.array([1, 1 << n], dtype=np.int64) for n in range(count)]
        whole = sum(
            one.fetch() for one in partitions.tree_of([engine.held(part) for part in parts])
        )
        assert whole.tolist() == [count, (1 << count) - 1]
        assert len(engine.fetched) <= partitions.FAN_IN
