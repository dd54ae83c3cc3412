"""Stores and ledgers of 0.3.0 are read; older files are refused in one sentence with a way on."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from dplasso import (
    DPLogisticRegression,
    Ledger,
    LedgerError,
    ModelFileError,
    StoreError,
    load,
    open_store,
)
from dplasso.checkpoint import read_checkpoint
from dplasso.ledger import read_budgets

OLD = Path(__file__).parent / "version_0.2"
HERE = Path(__file__).parent / "version_0.3"


def charged_fit(path):
    model = DPLogisticRegression(0.3, classes=[0, 1], ledger=Ledger(path, "visits"))
    return model.fit(np.eye(40), np.arange(40) % 2)


def test_a_ledger_is_read_and_charged_on(tmp_path):
    path = shutil.copy(HERE / "team.ledger", tmp_path)
    budgets = [Ledger(path, name).budget() for name in ("visits", "referrals")]
    assert [budget.rows_per_person for budget in budgets] == [1, 3]
    (entry,) = budgets[0].entries
    assert (entry.state, entry.charge.epsilon, entry.charge.purpose) == ("finished", 0.5, "golden")
    charged_fit(path)
    assert Ledger(path, "visits").budget().entries[0] == entry
    assert len(Ledger(path, "visits").budget().entries) == 2


def test_an_older_store_is_refused_with_the_way_on():
    with pytest.raises(
        StoreError, match=r"has version 1 of the store format.*convert the data again"
    ):
        open_store(OLD / "rows.store")


@pytest.mark.parametrize(
    ("path", "read", "error", "words"),
    [
        (OLD / "lasso.model", load, ModelFileError, "give its weights as a prior"),
        (HERE / "lasso.model", load, ModelFileError, "give its weights as a prior"),
        (OLD / "logistic.checkpoint", read_checkpoint, ValueError, "or begin it again"),
        (HERE / "lasso.checkpoint", read_checkpoint, ValueError, "or begin it again"),
        (OLD / "team.ledger", read_budgets, LedgerError, "Charge it once with dplasso 0.3"),
    ],
    ids=lambda value: "/".join(value.parts[-2:]) if isinstance(value, Path) else None,
)
def test_older_files_are_refused_with_the_way_on(path, read, error, words):
    before = path.read_bytes()
    with pytest.raises(error, match=words) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path} ")
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_an_older_ledger_is_not_written_to(tmp_path):
    path = Path(shutil.copy(OLD / "team.ledger", tmp_path))
    with pytest.raises(LedgerError, match="dplasso ledger spend"):
        charged_fit(path)
    assert path.read_bytes() == (OLD / "team.ledger").read_bytes()
