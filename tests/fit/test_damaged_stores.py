"""A byte of a store that differs is found before a fit spends anything, or changes nothing."""

import shutil

import numpy as np
import pytest

from data.store.reference import random_matrix
from data.store.test_damage import overwrite, repeat_a_column
from dplasso import (
    DPLassoClassifier,
    DPLogisticRegression,
    Ledger,
    StoreError,
    open_store,
    write_store,
)
from dplasso.cluster import ThreadEngine
from dplasso.ledger import create_ledger

Y = np.arange(60) % 2
FLIPS = 12
"""Flipped bits of each file."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "train.store"
    write_store(path, random_matrix(60, 40, 0.2), Y, groups=np.arange(60) // 2)
    return path


@pytest.fixture
def damaged(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "train.store")


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "team.ledger"
    create_ledger(path, 1e6, 1e-3, dataset="visits")
    return path


def fit(path, how, **options):
    kind = DPLassoClassifier if how == "lasso" else DPLogisticRegression
    model = kind(epsilon=1.0, classes=[0, 1], rows_per_person=1, **options)
    if how == "partition":
        return model.fit([str(path)], engine=ThreadEngine())
    return model.fit(open_store(path))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["logistic", "lasso", "partition"])
def test_a_flipped_bit_is_refused_or_without_effect(whole, damaged, ledger, how):
    rng, refused = np.random.default_rng(39), 0
    expected = fit(whole, how, random_state=0).coef_
    # Values first: a fit that trusted a store might crash at a wrong index.
    for file in sorted(whole.iterdir(), reverse=True):
        content = file.read_bytes()
        for place in rng.integers(0, len(content), FLIPS):
            flipped = bytes([content[place] ^ (1 << rng.integers(8))])
            overwrite(damaged, file.name, place, flipped)
            sentence = ""
            try:
                found = fit(damaged, how, random_state=0).coef_
            except StoreError as error:
                sentence = str(error)
            except Exception as error:
                pytest.fail(f"not refused as damaged: {error}")
            if sentence:
                refused += 1
                assert str(damaged) in sentence
                assert "\n" not in sentence
                assert f"{file.name} is damaged: " in sentence or file.name == "header.json"
                with pytest.raises(StoreError):
                    fit(damaged, how, ledger=Ledger(ledger, "visits"))
            else:
                assert file.name == "header.json"
                np.testing.assert_array_equal(found, expected)
            (damaged / file.name).write_bytes(content)
    assert refused > 5 * FLIPS
    assert not Ledger(ledger).budget().entries


@pytest.mark.parametrize("how", ["logistic", "lasso", "partition"])
def test_an_entry_that_counts_twice_is_refused_whatever_the_checksums(damaged, ledger, how):
    row = repeat_a_column(damaged)
    with pytest.raises(StoreError, match=f"rows.indices.npy is damaged: row {row} has columns"):
        fit(damaged, how, ledger=Ledger(ledger, "visits"))
    assert not Ledger(ledger).budget().entries
