"""Weights and people of rows in partitions: the bits of one process, wherever a row lies."""

import numpy as np
import pytest
from sklearn.base import clone

from cluster.cases import Killer, cut, records, released
from dplasso import DataError, DPLassoClassifier, DPLogisticRegression, write_store
from dplasso.cluster import InProcessEngine, ThreadEngine

WEIGHTED = {
    "staged": DPLassoClassifier(30.0, random_state=3),
    "dense": DPLogisticRegression(2.0, random_state=3),
    "no intercept": DPLogisticRegression(2.0, fit_intercept=False, random_state=3),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*which were clipped to 1:UserWarning")
X, Y = records(160, 40)
WEIGHTS = np.random.default_rng(1).uniform(0.0, 1.5, 160)
# Some people have many rows, in several partitions.
PEOPLE = np.random.default_rng(2).integers(0, 25, 160)


@pytest.mark.parametrize("name", ["staged", "dense"])
def test_a_person_is_limited_wherever_the_rows_lie(name):
    model = clone(WEIGHTED[name]).set_params(classes=[0, 1])
    Xs, ys = cut(X, Y, 4)
    (_, people), (_, weights) = cut(X, PEOPLE, 4), cut(X, WEIGHTS, 4)
    engine = InProcessEngine()
    expected = released(model.fit(X, Y, groups=PEOPLE))
    assert released(model.fit(Xs, ys, groups=people, engine=engine)) == expected
    expected = released(model.fit(X, Y, groups=PEOPLE, sample_weight=WEIGHTS))
    found = model.fit(Xs, ys, groups=people, sample_weight=weights, engine=engine)
    assert released(found) == expected
    # A partition of which no row enters is none.
    again = [np.zeros_like(some) for some in people[1:]]
    only = model.fit(Xs, ys, groups=[people[0] * 0, *again], engine=engine)
    assert released(only) == released(model.fit(X, Y, groups=PEOPLE * 0))


def test_what_does_not_go_together_is_refused(tmp_path):
    model, engine = WEIGHTED["dense"], InProcessEngine()
    (Xs, ys), (_, people), (_, weights) = cut(X, Y, 2), cut(X, PEOPLE, 2), cut(X, WEIGHTS, 2)
    write_store(tmp_path / "a.store", X, Y)
    store = [str(tmp_path / "a.store")]
    for given, options, sentence in (
        ((Xs, ys), {"groups": PEOPLE}, "there are 2 partitions, but groups of 160"),
        ((Xs, ys), {"sample_weight": weights[:1]}, "there are 2 partitions, but weights of 1"),
        ((Xs, ys), {"sample_weight": weights[::-1]}, "partition 1 has 57 rows, but 103 weights"),
        ((Xs, ys), {"sample_weight": [weights, weights]}, "one number for each of its rows"),
        ((Xs, ys), {"sample_weight": [[10**400], [1.0]]}, "one number for each of its rows"),
        ((Xs, ys), {"sample_weight": [np.array(["1"]), [1.0]]}, "one number for each of its rows"),
        ((Xs, ys), {"sample_weight": [-weights[0], weights[1]]}, "negative"),
        ((Xs, ys), {"groups": people[::-1]}, "one entry for each of 57 rows"),
        (
            (Xs, ys),
            {"groups": [people[0], people[1].astype(str)]},
            "n 2, row 1: .* one type of id",
        ),
        ((store,), {"groups": [PEOPLE]}, "a.store is a store, and groups needs rows in memory"),
    ):
        with pytest.raises(DataError, match=sentence):
            model.fit(*given, engine=engine, **options)


@pytest.mark.parametrize("name", ["staged", "dense", "no intercept"])
def test_stores_that_know_people_limit_them_together(name, tmp_path):
    model = clone(WEIGHTED[name]).set_params(classes=[0, 1], rows_per_person=2)
    Xs, ys = cut(X, Y, 3)
    _, people = cut(X, PEOPLE, 3)
    stores = [tmp_path / f"{number}.store" for number in range(3)]
    for place, some, labels, own in zip(stores, Xs, ys, people, strict=True):
        write_store(place, some, labels, groups=own)
    expected = released(model.fit(X, Y, groups=PEOPLE))
    assert released(model.fit(stores, engine=InProcessEngine())) == expected
    assert released(model.fit(stores, engine=ThreadEngine())) == expected
    # A worker that is lost in the run is told again whose rows are left out.
    assert released(model.fit(stores, engine=Killer(at=(30,)))) == expected
    write_store(tmp_path / "plain.store", Xs[2], ys[2])
    with pytest.raises(DataError, match=r"one has a person column"):
        model.fit([*stores[:2], tmp_path / "plain.store"], engine=InProcessEngine())
