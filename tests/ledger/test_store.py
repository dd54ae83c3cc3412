"""The ledger's file: entries that stay, data sets kept apart, and files that are no ledger."""

import fcntl
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dplasso import BudgetError, LedgerError
from dplasso.ledger import (
    Reservation,
    add_dataset,
    create_ledger,
    database,
    find,
    finish,
    name_dataset,
    new_token,
    pick,
    read_budgets,
    reserve,
)
from ledger.workers import charge, only


@pytest.fixture
def path(tmp_path):
    """Give a ledger with a budget of (3, 1e-5) for "visits"."""
    create_ledger(tmp_path / "team.ledger", 3.0, 1e-5, dataset="visits")
    return str(tmp_path / "team.ledger")


def alter(path, *statements):
    """Do with another program what this one never does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


class TestEntries:
    def test_a_charge_comes_back_as_it_was_made(self, path):
        began = datetime.now(UTC) - timedelta(seconds=1)
        cost = replace(charge(0.7, 1e-7, 33), rows_per_person=5)
        reservation = reserve(path, "visits", cost)
        (entry,) = only(path).entries
        assert entry.charge == cost
        assert (entry.number, entry.state, entry.ended_at) == (1, "reserved", None)
        assert entry.process == os.getpid()
        assert all((entry.user, entry.host, entry.program.startswith("dplasso ")))
        assert began <= datetime.fromisoformat(entry.reserved_at) <= datetime.now(UTC)
        assert finish(reservation)
        (entry,) = only(path).entries
        assert (entry.state, entry.charge) == ("finished", cost)
        assert entry.ended_at >= entry.reserved_at

    def test_a_token_charges_once_and_only_for_the_same_fit(self, path):
        token = new_token()
        assert find(path, token) is None
        made = reserve(path, None, charge(), token=token)
        assert (made.token, find(path, token)) == (token, made.number)
        assert reserve(path, None, charge(), token=token) == made
        finish(made, failed=True)
        assert reserve(path, "visits", charge(), token=token) == made
        assert len(only(path).entries) == 1
        with pytest.raises(LedgerError, match="holds no entry"):
            reserve(path, None, charge(1 + 1e-9), token=token)
        with pytest.raises(LedgerError, match="charged to 'visits', not 'other'"):
            reserve(path, "other", charge(), token=token)
        assert reserve(path, None, charge(), token=new_token()).number == 2

    def test_a_finished_entry_keeps_what_it_paid_for(self, path):
        made = reserve(path, None, charge())
        for stranger in (replace(made, token="0" * 32), replace(made, number=7)):
            assert not finish(stranger)
        assert finish(made, failed=True)
        assert finish(made, release="one")
        assert finish(made, release="one")
        failed = {"failed": True}
        for end in ({}, {"release": "another"}, failed, failed | {"release": "one"}):
            assert not finish(made, **end)
        assert only(path).entries[0].state == "finished"
        assert reserve(path, None, charge(), token=made.token, release="one") == made
        with pytest.raises(LedgerError, match="in another one"):
            reserve(path, None, charge(), token=made.token, release="another")
        # A release that nobody noted is not guessed.
        unknown = reserve(path, None, charge())
        assert finish(unknown)
        assert not finish(unknown, release="one")
        for release in (None, "one"):
            with pytest.raises(LedgerError, match="has paid for a model already"):
                reserve(path, None, charge(), token=unknown.token, release=release)

    def test_purpose_and_fingerprint_come_back_and_cannot_be_altered(self, path):
        noted = replace(charge(0.1), purpose="readmission", fingerprint="0123456789abcdef")
        reserve(path, None, noted)
        finish(reserve(path, None, charge(0.1)), release="one")
        first, second = only(path).entries
        kept = replace(noted, fingerprint=first.charge.fingerprint)
        assert (first.charge, second.charge) == (kept, charge(0.1))
        assert (first.release, second.release) == (None, "one")
        for column in ("purpose", "fingerprint", "rows_per_person"):
            copy = f"{path}.{column}"
            shutil.copy(path, copy)
            alter(copy, f"UPDATE entry SET {column} = 7 WHERE number = 1")
            with pytest.raises(LedgerError, match="is damaged"):
                read_budgets(copy)

    def test_no_statement_takes_a_charge_back(self, path):
        finish(reserve(path, None, charge()))
        before = read_budgets(path)
        for statement in (
            *("DELETE FROM entry", "DELETE FROM dataset"),
            *(f"UPDATE entry SET {one}" for one in ("rho = '1'", "dataset = 2", "state = 'none'")),
            "UPDATE entry SET state = 'reserved' WHERE state = 'finished'",
            *(f"UPDATE dataset SET {one} = 2" for one in ("epsilon", "rows_per_person", "name")),
            "UPDATE dataset SET draw_delta_limit = '1'",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                alter(path, statement)
            assert read_budgets(path) == before

    @pytest.mark.parametrize(
        "statements",
        [
            ("DROP TRIGGER entry_stays", "DELETE FROM entry WHERE number = 1"),
            ("DROP TRIGGER entry_stays", "DELETE FROM entry WHERE number = 3"),
            ("DROP TRIGGER entry_fixed", "UPDATE entry SET rho = '1' WHERE number = 2"),
            ("UPDATE entry SET epsilon = 0.4 WHERE number = 1",),
            ("UPDATE entry SET user = 'somebody else' WHERE number = 1",),
            ("DROP TRIGGER dataset_fixed", "UPDATE dataset SET epsilon = 100"),
            ("DROP TRIGGER dataset_fixed", "UPDATE dataset SET rows_per_person = 2"),
            ("UPDATE entry SET rows_per_person = NULL WHERE number = 1",),
            ("UPDATE entry SET rows_per_person = 2 WHERE number = 3",),
            ("DROP TRIGGER dataset_fixed", "UPDATE dataset SET draw_delta_limit = '1'"),
            ("PRAGMA foreign_keys = OFF", "DROP TRIGGER dataset_stays", "DELETE FROM dataset"),
        ],
    )
    def test_an_altered_or_lost_row_is_noticed(self, path, statements):
        for _ in range(3):
            reserve(path, None, charge(0.5))
        alter(path, *statements)
        for use in (read_budgets, lambda path: reserve(path, None, charge(0.5))):
            with pytest.raises(LedgerError, match="is damaged"):
                use(path)


class TestDatasets:
    def test_what_the_ledger_does_not_keep_is_refused_and_not_added(self, path):
        with pytest.raises(LedgerError, match=r"neighbors='add-remove'.*'replace-one'"):
            reserve(path, "visits", charge(neighbors="replace-one"))
        with pytest.raises(LedgerError, match="has no data set 'vistis'; it knows 'visits'"):
            reserve(path, "vistis", charge())
        with pytest.raises(LedgerError, match="has a data set 'visits' already"):
            add_dataset(path, "visits", 100.0, 1e-5)
        assert (only(path).entries, only(path).epsilon) == ((), 3.0)
        reserve(path, None, charge(0.1))
        add_dataset(path, "referrals", 1.0, 1e-6)
        with pytest.raises(LedgerError, match="name one of 'visits', 'referrals'"):
            reserve(path, None, charge(0.1))

    def test_the_first_name_given_is_the_name(self, tmp_path):
        path = tmp_path / "team.ledger"
        create_ledger(path, 3.0, 1e-5)
        reserve(path, None, charge(0.5))
        with pytest.raises(LedgerError, match="has no name; give"):
            add_dataset(path, "referrals", 1.0, 1e-6)
        with pytest.raises(BudgetError):
            reserve(path, "vistis", charge(50.0))
        assert only(path).name is None
        name = "größe ☂'\"; DROP TABLE entry"
        reserve(path, name, charge(0.5))
        assert (only(path).name, len(only(path).entries)) == (name, 2)
        with pytest.raises(LedgerError, match="has no data set"):
            reserve(path, "vistis", charge(0.5))
        with pytest.raises(LedgerError, match="a name cannot be changed"):
            name_dataset(path, "vistis")
        create_ledger(tmp_path / "other", 3.0, 1e-5)
        name_dataset(tmp_path / "other", "visits")
        assert only(tmp_path / "other").name == "visits"

    @pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x00", "x" * 201])
    def test_what_is_no_name(self, path, name):
        for use in (
            lambda: add_dataset(path, name, 1.0, 1e-5),
            lambda: reserve(path, name, charge()),
        ):
            with pytest.raises(LedgerError, match="dataset must be one line"):
                use()
        with pytest.raises(TypeError, match="dataset must be a string"):
            pick(read_budgets(path), 5, path)


class TestCreation:
    def test_no_budget_no_file(self, tmp_path):
        bad = [{"epsilon": epsilon} for epsilon in (float("inf"), 0.0, -1.0, float("nan"), "3")]
        bad += [{"delta": 0.0}, {"delta": 1.0}, {"neighbors": "remove"}]
        bad += [{"epsilon": 1e-12, "delta": 1e-300}]
        bad += [{"rows_per_person": rows} for rows in (0, -1, 1.5, True, "5", None)]
        for change in bad:
            with pytest.raises((ValueError, TypeError)):
                create_ledger(tmp_path / "l", **{"epsilon": 3.0, "delta": 1e-5} | change)
            assert list(tmp_path.iterdir()) == []

    def test_nothing_is_overwritten(self, path, tmp_path):
        reserve(path, None, charge())
        before = read_budgets(path)
        with pytest.raises(LedgerError, match="exists already"):
            create_ledger(path, 100.0, 1e-5)
        assert read_budgets(path) == before
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        with pytest.raises(LedgerError, match="exists already"):
            create_ledger(tmp_path / "link", 1.0, 1e-5)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "team.ledger"]

    def test_a_failure_leaves_nothing(self, tmp_path, monkeypatch):
        with pytest.raises(LedgerError, match=r"no ledger can be created at .*nowhere"):
            create_ledger(tmp_path / "nowhere" / "l", 1.0, 1e-5)

        def refuse(*_):
            raise OSError(1, "links are not supported")

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(LedgerError, match="links are not supported"):
            create_ledger(tmp_path / "l", 1.0, 1e-5)
        assert list(tmp_path.iterdir()) == []


BAD = {
    b"": "is not a dplasso ledger",
    b"+1 1:1\n-1 2:1\n" * 30: "is not a dplasso ledger",
    b"SQLite format 3\x00" + bytes(500): "is not a dplasso ledger",
    "another database": "is not a dplasso ledger",
    "newer": "has version 6 .* install a newer dplasso",
    "older": "was written before dplasso 0.3. Charge it once with dplasso 0.3",
    "cut": "is damaged",
    "scribbled": "is damaged",
    None: "there is no ledger .*; create it with dplasso ledger init",
    "directory": "is a folder, not a ledger",
}


class TestBadFiles:
    def make(self, path, content):
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content == "directory":
            path.mkdir()
        elif content == "another database":
            alter(path, "CREATE TABLE entry (x)")
        elif content is not None:
            create_ledger(path, 1.0, 1e-5)
            if content in ("newer", "older"):
                version = 6 if content == "newer" else 4
                alter(path, f"PRAGMA user_version = {version}")
            whole = path.read_bytes()
            if content == "cut":
                path.write_bytes(whole[: len(whole) // 2])
            elif content == "scribbled":
                path.write_bytes(whole[:4096] + b"\x55" * (len(whole) - 4096))

    @pytest.mark.parametrize("content", BAD)
    def test_refused_in_one_sentence_and_not_touched(self, tmp_path, content):
        path = tmp_path / "bad.ledger"
        self.make(path, content)
        before = path.read_bytes() if path.is_file() else list(tmp_path.iterdir())
        for use in (
            lambda: reserve(path, None, charge(0.1)),
            lambda: add_dataset(path, "more", 1.0, 1e-5),
            lambda: finish(Reservation(str(path), 1, "0")),
            lambda: reserve(path, None, charge(0.1), token="0"),
        ):
            with pytest.raises(LedgerError, match=BAD[content]) as refusal:
                use()
            assert "bad.ledger" in str(refusal.value)
            assert "\n" not in str(refusal.value)
            assert before == (path.read_bytes() if path.is_file() else list(tmp_path.iterdir()))

    def test_a_reader_at_work_leaves_room_for_a_charge(self, path, monkeypatch):
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
        with database.transaction(path, write=False):
            reserve(path, None, charge(0.1))

    def test_locked_for_too_long(self, path, monkeypatch):
        made = reserve(path, None, charge(0.1))
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
        with Path(path).open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_SH)
            busy = r"locked by other processes for more than 0\.2"
            with pytest.raises(LedgerError, match=busy):
                reserve(path, None, charge(0.1))
            with pytest.raises(LedgerError, match=busy) as late:
                finish(made)
            # That fit was charged.
            assert "spent" not in str(late.value)
            # Readers do not keep each other out.
            assert len(only(path).entries) == 1
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(LedgerError, match=busy):
                read_budgets(path)
        reserve(path, None, charge(0.1))
        assert len(only(path).entries) == 2


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    """Never a smaller sum than what was spent, whichever byte of the file goes wrong."""
    path = tmp_path / "l"
    create_ledger(path, 3.0, 1e-5, dataset="visits")
    for epsilon in (0.5, 1.0):
        finish(reserve(path, None, charge(epsilon)))
    before, whole = read_budgets(path), path.read_bytes()
    rows = [k for k in range(len(whole)) if whole[k] and whole[k] not in b" "]
    damaged = tmp_path / "damaged"
    refused = 0
    for k in rows[:: max(1, len(rows) // 150)]:
        damaged.write_bytes(whole[:k] + bytes([whole[k] ^ 0x04]) + whole[k + 1 :])
        try:
            (budget,) = read_budgets(damaged)
        except LedgerError:
            refused += 1
            continue
        assert budget.rho == before[0].rho
        assert (budget.epsilon, budget.delta) == (3.0, 1e-5)
        assert len(budget.entries) == 2
    assert refused > 10


def test_a_user_whose_name_is_not_text_or_who_has_none(path, monkeypatch):
    def nobody():
        raise KeyError("uid not found")

    monkeypatch.setenv("LOGNAME", os.fsdecode(b"Jos\xe9"))
    reserve(path, None, charge(0.1))
    monkeypatch.setattr("getpass.getuser", nobody)
    reserve(path, None, charge(0.1))
    one, other = only(path).entries
    assert one.user == "Jos\\xe9"
    assert other.user.startswith("uid ")
