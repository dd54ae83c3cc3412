"""Ledgers of dplasso 0.2.0: what they say was spent goes on counting."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dplasso.errors import BudgetError, LedgerError
from dplasso.ledger import add_dataset, finish, read_budgets, reserve, rho_limit, totals
from dplasso.ledger.schema import SCHEMA_VERSION
from ledger.workers import raw_charge

HERE = Path(__file__).parent
# Two data sets; a charge that failed, one that never ended, and one of up to five rows of a person.
EXPECTED = json.loads((HERE / "version_0.2.0.json").read_text())


@pytest.fixture
def path(tmp_path):
    return Path(shutil.copy(HERE / "version_0.2.0.ledger", tmp_path))


def version(path):
    return int.from_bytes(path.read_bytes()[60:64], "big")


def test_it_is_read_as_it_was_written(path):
    before = path.read_bytes()
    budgets = read_budgets(path)
    assert path.read_bytes() == before
    assert [budget.name for budget in budgets] == ["visits", "referrals"]
    for budget, expected in zip(budgets, EXPECTED, strict=True):
        for name in ("epsilon", "delta", "neighbors", "draw_delta_limit"):
            assert getattr(budget, name) == expected[name]
        assert len(budget.entries) == len(expected["entries"])
        for entry, told in zip(budget.entries, expected["entries"], strict=True):
            charge = told.pop("charge")
            assert {name: getattr(entry, name) for name in told} == told
            assert {name: getattr(entry.charge, name) for name in charge} == charge
        assert budget.rho == sum(entry.charge.rho for entry in budget.entries)
        # Its budgets are for a row, and whom else a charge covers is unknown.
        assert budget.rows_per_person == 1
        assert {entry.charge.rows_per_person for entry in budget.entries} == {None}
        assert totals(budget) == {1: (budget.rho, budget.draw_delta)}
    states = [entry.state for entry in budgets[0].entries]
    assert states == ["finished", "finished", "failed", "reserved"]


def test_it_is_charged_on(path):
    before = read_budgets(path)
    visits = before[0]
    rest = rho_limit(visits) - visits.rho
    with pytest.raises(BudgetError):
        reserve(path, "visits", raw_charge(rest + 1))
    assert version(path) == 3
    made = reserve(path, "visits", raw_charge(rest))
    assert version(path) == SCHEMA_VERSION
    assert finish(made, release="1" * 64)
    add_dataset(path, "more", 1.0, 1e-6, rows_per_person=3)
    after = read_budgets(path)
    assert after[0].entries[:-1] == visits.entries
    assert after[0].entries[-1].charge == raw_charge(rest)
    assert after[1] == before[1]
    assert after[2].rows_per_person == 3


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER entry_fixed; UPDATE entry SET rows_per_person = 5 WHERE number = 1",
        "DROP TRIGGER entry_fixed; UPDATE entry SET fingerprint = 0 WHERE number = 1",
        "DROP TRIGGER dataset_fixed; UPDATE dataset SET rows_per_person = 5",
    ],
)
def test_what_was_added_cannot_be_given_to_its_entries(path, statement):
    reserve(path, "visits", raw_charge(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(statement)
    with pytest.raises(LedgerError, match="is damaged"):
        read_budgets(path)


@pytest.mark.parametrize("old", [0, 1, 2])
def test_older_ones_are_refused_with_the_way_on(path, old):
    content = bytearray(path.read_bytes())
    content[60:64] = old.to_bytes(4, "big")
    path.write_bytes(content)
    for use in (read_budgets, lambda path: reserve(path, "visits", raw_charge(1))):
        with pytest.raises(LedgerError, match=f"version {old} .*charge it once with dplasso 0.2.0"):
            use(path)
    assert path.read_bytes() == content
