"""A fit on partitions is the fit of one process, bit for bit, whatever the partition."""

import numpy as np
import pytest

from cluster.cases import MODELS, cut, records, released
from dplasso import DPLasso, DPLassoClassifier, DPLogisticRegression, open_store, write_store
from dplasso.cluster import InProcessEngine, ThreadEngine

ENGINES = {"in process": InProcessEngine(), "threads": ThreadEngine(threads=2)}


@pytest.mark.parametrize("name", MODELS)
def test_any_partition_gives_the_bits_of_one_process(name):
    X, y = records(n_columns=450 if name in ("staged", "strong") else 60)
    model = MODELS[name]
    expected = released(model.fit(X, y))
    for n_parts, engine in ((1, "in process"), (2, "threads"), (7, "in process")):
        assert released(model.fit(*cut(X, y, n_parts), engine=ENGINES[engine])) == expected, n_parts
    Xs, ys = cut(X, y, 3)
    by_columns = [some.tocsc() for some in Xs]
    assert released(model.fit(by_columns, ys, engine=ENGINES["in process"])) == expected
    if name in ("staged", "strong"):
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
    numbers = DPLasso(3.0, target_bounds=(-2, 2), random_state=1)
    expected = numbers.fit(X, targets).model_.digest
    assert numbers.fit(*cut(X, targets, 3), engine=ThreadEngine()).model_.digest == expected
