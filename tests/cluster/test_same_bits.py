"""A fit on partitions is the fit of one process, bit for bit, whatever the partition."""

import numpy as np
import pytest

from cluster.cases import MODELS, cut, records, released
from dplasso import DPLasso, DPLassoClassifier, DPLogisticRegression, open_store, write_store
from dplasso.cluster import InProcessEngine, ThreadEngine

ENGINES = dict.fromkeys(("in process", "columns"), InProcessEngine())
ENGINES["threads"] = ThreadEngine(threads=2)


WEIGHTS = np.random.default_rng(1).uniform(0.0, 1.5, 400)
pytestmark = pytest.mark.filterwarnings("ignore:.*which were clipped to 1:UserWarning")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["whole", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_any_partition_gives_the_bits_of_one_process(name, weights):
    X, y = records(n_columns=450 if name in ("staged", "strong") else 60)
    model = MODELS[name]
    expected = released(model.fit(X, y, sample_weight=weights))
    if weights is not None:
        assert released(model.fit(X, y)) != expected
    for n_parts, engine in ((1, "in process"), (2, "threads"), (7, "in process"), (3, "columns")):
        Xs, ys = cut(X, y, n_parts)
        own = None if weights is None else cut(X, weights, n_parts)[1]
        if engine == "columns":
            Xs = [some.tocsc() for some in Xs]
        model.fit(Xs, ys, sample_weight=own, engine=ENGINES[engine])
        assert released(model) == expected, n_parts
    if weights is None and name in ("staged", "strong"):
        assert len(model.transcript_) > 2
        assert model.n_records_ != 400


def test_several_classes_and_numbers_are_learnt_alike(tmp_path):
    X, y = records()
    targets = X[:, [0]].toarray()[:, 0] - X[:, [1]].toarray()[:, 0]
    three = np.array(["a", "b", "c"])[y + (targets > 1)]
    for many in (
        DPLogisticRegression(3.0, random_state=1),
        DPLassoClassifier(30.0, max_weights=12, random_state=1),
    ):
        expected = released(many.fit(X, three))
        assert released(many.fit(*cut(X, three, 3), engine=ThreadEngine())) == expected
    paths = [tmp_path / f"{number}.store" for number in range(2)]
    for path, some, labels in zip(paths, *cut(X, three, 2), strict=True):
        write_store(path, some, labels)
    assert released(many.fit(list(map(str, paths)), engine=ThreadEngine())) == expected
    assert released(many.fit([*map(open_store, paths)], engine=InProcessEngine())) == expected
    expected = released(many.fit(X, three, sample_weight=WEIGHTS))
    _, weights = cut(X, WEIGHTS, 2)
    assert released(many.fit(paths, sample_weight=weights, engine=ThreadEngine())) == expected
    numbers = DPLasso(3.0, target_bounds=(-2, 2), random_state=1)
    for whole, parts in ((None, None), (WEIGHTS, cut(X, WEIGHTS, 3)[1])):
        expected = numbers.fit(X, targets, sample_weight=whole).model_.digest
        numbers.fit(*cut(X, targets, 3), sample_weight=parts, engine=ThreadEngine())
        assert numbers.model_.digest == expected
