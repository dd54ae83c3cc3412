"""Ledgers of dplasso 0.1.0, which SQLite kept in WAL mode: they go on as they were."""

import os
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from dplasso.errors import BudgetError, LedgerError
from dplasso.privacy.ledger import (
    Reservation,
    add_dataset,
    capacity,
    finish,
    image,
    read_budgets,
    reserve,
    rho_limit,
)
from dplasso.privacy.ledger.schema import SCHEMA_VERSION
from privacy.ledger.workers import charge, raw_charge

FILES = Path(__file__).parent / "version_1"
# What version 0.1.0 charged for epsilon 0.5 at delta 1e-6 in 100 steps, and 0.25, 1e-7, 33.
HALF = (6641432319192387354453051184, 46004925593168046557)
QUARTER = (1451442039379080462966458335, 15148739807251663237)


@pytest.fixture(params=["whole", "killed"])
def path(tmp_path, request):
    """Return a ledger whose process ended well, or was killed with a charge in its log."""
    for file in FILES.glob(f"{request.param}.ledger*"):
        shutil.copy(file, tmp_path / file.name)
    return tmp_path / f"{request.param}.ledger"


def version(path):
    return int.from_bytes(path.read_bytes()[60:64], "big")


def test_it_is_read_as_it_was_written(path):
    visits, referrals = read_budgets(path)
    assert (visits.name, visits.epsilon, visits.delta) == ("visits", 3.0, 1e-5)
    assert (referrals.name, referrals.neighbors) == ("referrals", "replace-one")
    assert [entry.state for entry in visits.entries[:2]] == ["finished", "failed"]
    assert [(e.charge.rho, e.charge.draw_delta) for e in visits.entries[:2]] == [HALF, QUARTER]
    assert visits.entries[0].charge == charge(0.5)
    assert visits.entries[1].charge == charge(0.25, 1e-7, 33)
    assert len(visits.entries) == (3 if path.name.startswith("killed") else 2)
    assert referrals.entries[0].charge.eps0 == charge(0.5).eps0
    assert version(path) == SCHEMA_VERSION
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert read_budgets(path) == (visits, referrals)


def test_it_is_charged_on_by_its_own_rule(path):
    visits, _ = read_budgets(path)
    assert visits.draw_delta_limit is None
    # The limit of rho moves with the draws, as it did.
    assert rho_limit(visits) == capacity(3.0, 1e-5, visits.draw_delta)
    assert rho_limit(visits, 10**24, 1) == capacity(3.0, 1e-5, visits.draw_delta + 10**24)
    rest = rho_limit(visits) - visits.rho
    with pytest.raises(BudgetError):
        reserve(path, "visits", raw_charge(rest + 1))
    made = reserve(path, "visits", raw_charge(rest))
    assert finish(made, release="1" * 64)
    add_dataset(path, "more", 1.0, 1e-6)
    assert read_budgets(path)[2].draw_delta_limit == int(Fraction(1e-7) * 10**30)


def test_a_running_fit_of_the_old_version_can_be_ended(path):
    with closing(sqlite3.connect(path)) as db:
        ((number, token),) = db.execute(
            "SELECT number, token FROM entry WHERE state = 'reserved' AND dataset = 2"
        )
    assert finish(Reservation(str(path), number, token))
    assert read_budgets(path)[1].entries[0].state == "finished"


def test_the_old_program_in_it_is_waited_for(path, monkeypatch):
    monkeypatch.setattr(image, "BUSY_SECONDS", 0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("SELECT * FROM entry").fetchall()
        with pytest.raises(LedgerError, match="locked by other processes"):
            read_budgets(path)
    assert len(read_budgets(path)) == 2


def test_interrupted_it_is_the_old_one_or_the_new_one(path, monkeypatch):
    class Interrupted(BaseException):
        pass

    def interrupt(*_):
        raise Interrupted

    for step in ("_write", "_finish"):
        monkeypatch.setattr(image, step, interrupt)
        with pytest.raises(Interrupted):
            read_budgets(path)
        monkeypatch.undo()
    # The first left nothing, the second a whole copy behind the old database.
    assert version(path) == 1
    assert len(read_budgets(path)[0].entries) == (3 if path.name.startswith("killed") else 2)
    reserve(path, "visits", charge(0.1))
    assert version(path) == SCHEMA_VERSION


def test_what_cannot_be_written_is_not_brought_up_to_date(path, monkeypatch):
    real = os.fsync

    def refuse(_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(LedgerError, match="cannot be written: Read-only file system"):
        read_budgets(path)
    monkeypatch.setattr(os, "fsync", real)
    assert version(path) == 1
    assert len(read_budgets(path)) == 2
