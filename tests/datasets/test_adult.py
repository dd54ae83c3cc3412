from hashlib import blake2b
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from dplasso.datasets import FEATURE_NAMES, cross_name, crosses, load_adult


def crosses_by_name(names, order):
    """Return the set of crosses of one record whose columns, of different attributes, are named."""
    return {" & ".join(pick) for size in range(1, order + 1) for pick in combinations(names, size)}


@pytest.fixture(scope="module")
def train():
    return load_adult()


def names_of(X, row):
    return [FEATURE_NAMES[k] for k in X.indices[X.indptr[row] : X.indptr[row + 1]]]


def test_the_data(train):
    test = load_adult("test")
    assert (train.X.shape, test.X.shape) == ((32560, 123), (16281, 123))
    assert (train.X.nnz, test.X.nnz) == (451578, 225731)
    assert (train.X.data == 1).all()
    assert set(train.y) == set(test.y) == {-1, 1}
    # Compared once with the counts that UCI published: they agree but for one record.
    for part, digest in ((train, "60934b3004e28a5a"), (test, "b8fb9ad0a8fab18d")):
        whole = b"".join(one.tobytes() for one in (part.X.indptr, part.X.indices, part.y))
        assert blake2b(whole, digest_size=8).hexdigest() == digest
    assert (np.sum(train.y == 1), np.sum(test.y == 1)) == (7841, 3846)
    with pytest.raises(ValueError, match="part must be 'train' or 'test'"):
        load_adult("validation")


# --- crosses ------------------------------------------------------------------------------


def n_crosses(order=3):
    return crosses(csr_array((1, 123)), order).shape[1]


def test_the_domain_of_the_crosses():
    assert [n_crosses(order) for order in (1, 2, 3)] == [123, 123 + 6355, 123 + 6355 + 187203]
    # All crosses of two, and one in ten of three.
    columns = [*range(n_crosses(2)), *range(n_crosses(2), n_crosses(), 10), n_crosses() - 1]
    names = [cross_name(column) for column in columns]
    assert len(names) == len(set(names))
    assert names[:123] == list(FEATURE_NAMES)
    assert names[15] == "fnlwgt in fifth 3 of 5"
    assert names[-1] == ("capital-loss>0 & hours-per-week>=48 & native-country=Holand-Netherlands")
    assert "education=Bachelors & sex=Male" in names
    attributes = [{part.split("=")[0] for part in name.split(" & ")} for name in names[::9]]
    assert all(
        len(found) == name.count(" & ") + 1
        for found, name in zip(attributes, names[::9], strict=True)
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_crosses_like_the_twin(train, order):
    X = train.X[::500]
    C = crosses(X, order)
    C.has_canonical_format = False
    C.check_format()
    assert C.shape == (X.shape[0], n_crosses(order))
    assert (C.dtype, C.indices.dtype) == (np.float32, np.int32)
    assert (C.data == 1).all()
    for row in range(X.shape[0]):
        columns = C.indices[C.indptr[row] : C.indptr[row + 1]]
        assert (np.diff(columns) > 0).all()
        found = [cross_name(int(column)) for column in columns]
        expected = crosses_by_name(names_of(X, row), order)
        assert len(found) == len(expected)
        assert set(found) == expected


def test_crosses_of_a_record_do_not_depend_on_the_others(train):
    alone = vstack([crosses(train.X[[row]]) for row in (3, 40)], format="csr")
    together = crosses(train.X)
    assert (alone != together[[3, 40]]).nnz == 0
    assert together.nnz == 14903079
    # They leave their input alone, in which a zero is stored.
    zeros = csr_array(
        (np.array([0, 1, 1], np.float32), np.array([9, 71, 2]), np.array([0, 3])), shape=(1, 123)
    )
    before = zeros.copy()
    names = [cross_name(int(k)) for k in crosses(zeros).indices]
    assert names == ["age=33-40", "sex=Female", "age=33-40 & sex=Female"]
    np.testing.assert_array_equal(zeros.indices, before.indices)
    np.testing.assert_array_equal(zeros.data, before.data)


def test_crosses_refuse_what_is_not_adult():
    two_sexes = np.zeros((2, 123))
    two_sexes[1, [71, 72]] = 1
    for X, problem in (
        (two_sexes, "row 1 has two values of sex"),
        (np.ones((1, 7)), "X has 7 columns, UCI Adult has 123"),
        (np.full((1, 123), 0.5), "zeros and ones only"),
    ):
        with pytest.raises(ValueError, match=problem):
            crosses(csr_array(X))
    for order in (0, 4, "all"):
        with pytest.raises(ValueError, match="order must be 1, 2 or 3"):
            crosses(csr_array((1, 123)), order)
    for column in (-1, 193681):
        with pytest.raises(ValueError, match="column must be from 0 to 193680"):
            cross_name(column)
