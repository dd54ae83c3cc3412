"""Many processes at once, and processes that are killed."""

import multiprocessing
import random
import tempfile
import time
from pathlib import Path

import pytest

from dplasso.ledger import create_ledger, finish, new_budget, reserve, rho_limit
from ledger.workers import (
    charge,
    create_and_spend_all,
    only,
    raw_charge,
    spend_once_each,
    spend_until_killed,
    without_rights,
)

PROCESSES = 20


@pytest.fixture(scope="module")
def context():
    """Processes forked from one clean process that has done the imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["dplasso.estimators.classifiers", "dp_accounting.rdp", "ledger.workers"]
    )
    return context


def run_all(context, target, arguments):
    """Start one process for each set of arguments, let all go at once, collect their answers."""
    start, answers = context.Event(), context.Queue()
    processes = [context.Process(target=target, args=(*a, start, answers)) for a in arguments]
    for process in processes:
        process.start()
    start.set()
    found = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    return found


def test_twenty_processes_share_the_last_drop(context, tmp_path):
    """One of them creates the ledger."""
    fits, path = 50, str(tmp_path / "l")
    part = rho_limit(new_budget(None, 3.0, 1e-5, "add-remove")) // fits
    arguments = [(path, str(k), raw_charge(part)) for k in range(PROCESSES)]
    answers = run_all(context, create_and_spend_all, arguments)
    budget = only(path)
    assert [made for _, made, _ in answers if made is not None] == [budget.name]
    taken = [entry for _, _, entries in answers for entry in entries]
    # Exactly what fits, each entry acknowledged to exactly one process.
    assert sorted(number for number, _ in taken) == list(range(1, fits + 1))
    assert len({token for _, token in taken}) == fits
    assert budget.rho == fits * part
    assert [entry.state for entry in budget.entries] == ["finished"] * fits
    owners = {number: process for process, _, entries in answers for number, _ in entries}
    assert {entry.number: entry.process for entry in budget.entries} == owners
    assert [p.name for p in tmp_path.iterdir()] == ["l"]


def second_name(path, kind):
    """Return another name of the same file, in another directory."""
    other = path.parent / kind / "other.ledger"
    other.parent.mkdir()
    if kind == "hard link":
        other.hardlink_to(path)
    else:
        other.symlink_to(path)
    return other


@pytest.mark.parametrize("kind", ["hard link", "symlink"])
def test_a_file_of_two_names_has_one_budget(context, tmp_path, kind):
    names = []
    for attempt in range(25):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        create_ledger(folder / "l", 3.0, 1e-5, dataset="visits")
        names.append((str(folder / "l"), str(second_name(folder / "l", kind))))
    cost = raw_charge(rho_limit(only(names[0][0])) * 6 // 10)
    together = context.Barrier(2)
    arguments = [(files, cost, together) for files in zip(*names, strict=True)]
    answers = dict(run_all(context, spend_once_each, arguments))
    for attempt, pair in enumerate(names):
        spent = [(process, taken[attempt]) for process, taken in answers.items() if taken[attempt]]
        assert len(spent) == 1
        ((process, number),) = spent
        for name in pair:
            (entry,) = only(name).entries
            assert (entry.number, entry.process) == (number, process)


def test_killed_at_random_moments_nothing_is_lost_or_doubled(context, tmp_path):
    path = str(tmp_path / "l")
    create_ledger(path, 100.0, 1e-5)
    # Each process is killed under one of the file's names, which is then read under the next.
    names = [path, *(str(second_name(tmp_path / "l", kind)) for kind in ("hard link", "symlink"))]
    cost = raw_charge(10**20)
    told, rng = {}, random.Random(0)
    kills = 36
    for kill in range(kills):
        name = names[kill % len(names)]
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=spend_until_killed, args=(name, cost, theirs))
        process.start()
        theirs.close()
        # Once it is at work, at any moment of a cycle of some milliseconds.
        for _ in range(rng.randrange(1, 4)):
            assert mine.poll(60)
            state, number, token = mine.recv()
            told[number] = (state, token)
        time.sleep(rng.random() * 0.03)
        process.kill()
        process.join()
        try:
            while mine.poll():
                state, number, token = mine.recv()
                told[number] = (state, token)
        except EOFError:
            pass
        mine.close()
        budget = only(names[(kill + 1) % len(names)])  # readable after every kill
        entries = {entry.number: entry for entry in budget.entries}
        assert set(told) <= set(entries)
        assert budget.rho == len(entries) * cost.rho
    budget = only(path)
    numbers = [entry.number for entry in budget.entries]
    assert numbers == list(range(1, len(numbers) + 1))
    # A kill can fall between the commit and its acknowledgement: one more is spent, never less.
    assert 0 <= len(numbers) - len(told) <= kills
    for entry in budget.entries:
        state, _ = told.get(entry.number, ("reserved", ""))
        assert entry.state in (state, "finished")
    assert len(numbers) > kills


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_ledger_needs_the_right_to_its_file_and_to_nothing_beside_it(context, what):
    # pytest's own directories are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o777)
        path = directory / "l"
        create_ledger(path, 1.0, 1e-5)
        reservation = reserve(path, None, charge(0.1))
        path.chmod(0o444 if what == "file" else 0o666)
        if what == "directory":
            directory.chmod(0o555)
        answers = context.Queue()
        process = context.Process(target=without_rights, args=(finish, (reservation,), answers))
        process.start()
        answer = answers.get(timeout=60)
        process.join()
        directory.chmod(0o777)
        if what == "directory":
            assert answer is None
            assert only(path).entries[0].state == "finished"
            return
        assert answer[0] == "LedgerError"
        assert answer[1].startswith(f"{path} cannot be written: ")
        path.chmod(0o666)
        assert only(path).entries[0].state == "reserved"
