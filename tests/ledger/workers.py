"""What other processes do to a ledger in its tests, and charges to do it with."""

import os

import numpy as np

from dplasso import BudgetError, LedgerError
from dplasso.ledger import (
    Budget,
    Charge,
    Entry,
    charge_of,
    create_ledger,
    finish,
    read_budgets,
    reserve,
)
from dplasso.ledger.composition import capacity, draws_part
from dplasso.privacy.budget import Budget as FitBudget
from dplasso.privacy.budget import Draws, build_budget


def vertices(n_iter=100, epsilon=1.0, delta=1e-6, **asked) -> FitBudget:
    """Give what a fit of vertices alone spends."""
    draws = Draws(vertices=n_iter)
    return build_budget(draws, epsilon=epsilon, delta=delta, n_iter=n_iter, **asked)


def charge(epsilon=1.0, delta=1e-6, n_iter=100, neighbors="add-remove") -> Charge:
    """Give what a fit would be charged."""
    return charge_of(vertices(n_iter, epsilon, delta, neighbors=neighbors))


def raw_charge(rho: int, draw_delta: int = 0) -> Charge:
    """Give a charge of so many units."""
    return Charge(rho, draw_delta, 1.0, 1e-6, 10, 0.1, "add-remove", "exponential")


def budget_with(charges, epsilon=3.0, delta=1e-5, limit=None, rows=1) -> Budget:
    """Give a budget to which these were charged."""
    entries = [
        Entry(number, "finished", one, "", "", "", 0, "", None)
        for number, one in enumerate(charges, start=1)
    ]
    limit = draws_part(delta) if limit is None else limit
    return Budget("x", epsilon, delta, "add-remove", limit, rows, tuple(entries))


def only(path):
    """Give the budget of a ledger that has one data set."""
    (budget,) = read_budgets(path)
    return budget


def small_problem():
    """Give 60 rows, 20 columns and two labels."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 20)) < 0.3).astype(np.float32)
    return X, (X[:, 0] > 0).astype(np.int64)


def create_and_spend_all(path, name, cost, start, answers):
    """Try to create a ledger under this name, reserve and finish until refused.

    Answer with the name, if it is the ledger's, and with the entries' numbers and tokens.
    """
    start.wait()
    taken, made = [], name
    try:
        create_ledger(path, 3.0, 1e-5, dataset=name)
    except LedgerError:
        made = None
    try:
        while True:
            reservation = reserve(path, None, cost)
            assert finish(reservation)
            taken.append((reservation.number, reservation.token))
    except BudgetError:
        answers.put((os.getpid(), made, taken))


def spend_once_each(paths, cost, together, start, answers):
    """Reserve once in each ledger, all at once; answer with the numbers, None where refused."""
    start.wait()
    numbers = []
    for path in paths:
        together.wait(60)
        try:
            numbers.append(reserve(path, None, cost).number)
        except BudgetError:
            numbers.append(None)
    answers.put((os.getpid(), numbers))


def spend_until_killed(path, cost, pipe):
    """Reserve and finish for ever; tell what the ledger has acknowledged."""
    while True:
        reservation = reserve(path, None, cost)
        pipe.send(("reserved", reservation.number, reservation.token))
        finish(reservation)
        pipe.send(("finished", reservation.number, reservation.token))


def without_rights(function, arguments, answers):
    """Run a function as a user who may not write; answer with its error."""
    capacity(1.0, 1e-5, 1)  # what it imports, that user may not read
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        function(*arguments)
    except Exception as error:
        answers.put((type(error).__name__, str(error)))
    else:
        answers.put(None)
