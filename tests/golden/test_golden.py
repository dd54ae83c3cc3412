"""Files of 0.3.0 are read; older ones too, or refused with how to convert them."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dplasso import load, open_store
from dplasso.checkpoint import read_checkpoint
from dplasso.errors import CheckpointError, LedgerError, ModelFileError
from dplasso.ledger import read_budgets, read_cohorts, reserve
from ledger.workers import charge

OLD = Path(__file__).parent / "version_0.2"
HERE = Path(__file__).parent / "version_0.3"
MODELS = sorted(path.stem for path in HERE.glob("*.model"))


def table():
    """Return 120 rows of the columns that a model's schema knows."""
    words = np.random.PCG64(1).random_raw((4, 960))
    columns = (words[0] % 40) * (words[1] % 40) // 40
    values = ((2.0 * (words[2] % 128) - 127.0) / 64.0) * (columns % 3 - 1.0)
    noise = (words[3, :120] % 256 - 128.0) / 64.0
    i = np.arange(120)
    return pd.DataFrame({
        "ward": np.array(["bones", "eyes", "heart", "kitchen"])[i % 4],
        "age": 5.0 + i % 90,
        "score": values.reshape(120, 8).sum(axis=1) + noise,
        "note": np.array(["", "chest pain", "fine"])[i % 3],
    })  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_predicts_the_same(name):
    model = load(HERE / f"{name}.model")
    rows = table() if name == "table" else np.eye(40)
    margins = getattr(model, "decision_function", model.predict)(rows).ravel()
    with np.load(HERE / "margins.npz") as kept:
        np.testing.assert_allclose(margins, kept[name], rtol=1e-12, atol=1e-12)
    assert model.privacy_.is_private


def test_a_checkpoint_is_read():
    stored = read_checkpoint(HERE / "lasso.checkpoint")
    assert 0 < len(stored.release) < stored.statement.steps
    assert stored.classes.tolist() == ["no", "yes"]


def test_a_ledger_is_read_and_charged_on(tmp_path):
    path = shutil.copy(HERE / "team.ledger", tmp_path)
    budgets, groups = read_cohorts(path)
    assert [budget.name for budget in budgets] == ["visits", "referrals"]
    assert [budget.rows_per_person for budget in budgets] == [1, 3]
    assert groups[0].datasets == ("visits", "referrals")
    (entry,) = budgets[0].entries
    assert (entry.state, entry.charge.epsilon, entry.charge.purpose) == ("finished", 0.5, "golden")
    reserve(path, "visits", charge(0.5))
    assert read_budgets(path)[0].entries[0] == entry


def test_a_store_is_read():
    store = open_store(OLD / "rows.store", verify=True)
    assert store.X.tocsr().shape == (120, 40)
    assert set(store.y.tolist()) == {-1, 1}


@pytest.mark.parametrize(
    ("name", "read", "error", "words"),
    [
        ("lasso.model", load, ModelFileError, "load it with dplasso 0.3 and save it again"),
        (
            "logistic.checkpoint",
            read_checkpoint,
            CheckpointError,
            "finish the fit with the dplasso that",
        ),
        ("team.ledger", read_budgets, LedgerError, "charge it once with dplasso 0.3"),
    ],
)
def test_older_files_are_refused_with_the_way_on(name, read, error, words):
    before = (OLD / name).read_bytes()
    with pytest.raises(error, match=rf"{name} was written before dplasso 0\.3.*{words}"):
        read(OLD / name)
    assert (OLD / name).read_bytes() == before


def test_an_older_ledger_is_not_written_to(tmp_path):
    path = Path(shutil.copy(OLD / "team.ledger", tmp_path))
    with pytest.raises(LedgerError, match="dplasso ledger spend"):
        reserve(path, "visits", charge(0.1))
    assert path.read_bytes() == (OLD / "team.ledger").read_bytes()
