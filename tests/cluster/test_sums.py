"""Large answers are added up where they are, in a tree: the same bits, whatever its shape."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from cluster.cases import MODELS, Watched, cut, records, released
from dplasso.cluster import partitions
from dplasso.cluster.engines import Held, WorkerLost
from dplasso.cluster.ray_engine import RayWorker
from dplasso.frank_wolfe.round_part import Changes

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


@pytest.mark.parametrize("name", ["strong", "scaled without privacy", "short list"])
def test_order_and_shape_of_the_tree_do_not_change_a_bit(name, monkeypatch):
    X, y = records(120, 410 if name == "strong" else 60)
    expected = released(MODELS[name].fit(X, y))
    for n_parts, fan_in, depth in ((4, 4, 0), (5, 4, 1), (9, 2, 3), (7, 3, 1)):
        monkeypatch.setattr(partitions, "FAN_IN", fan_in)
        engine = Holding()
        assert released(MODELS[name].fit(*cut(X, y, n_parts), engine=engine)) == expected
        assert max(engine.fetched) == depth


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
