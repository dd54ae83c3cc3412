"""The ledger against the simplest thing that could be one: lists of numbers in memory."""

import shutil
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from dplasso import BudgetError, LedgerError
from dplasso.ledger import (
    UNITS,
    add_dataset,
    create_ledger,
    epsilon_total,
    finish,
    read_budgets,
    reserve,
)
from dplasso.ledger.composition import capacity
from ledger.workers import raw_charge

NAMES = st.sampled_from(["a", "b", "c", "d"])
BUDGETS = st.sampled_from([(3.0, 1e-5), (0.1, 1e-6), (20.0, 1e-9)])


class LedgerMachine(RuleBasedStateMachine):
    reservations = Bundle("reservations")

    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.path = str(self.directory / "l")
        self.budgets: dict[str, tuple[float, float]] = {}
        self.spent = defaultdict(list)
        self.entries = []  # state of each, in order
        self.costs = []

    def teardown(self):
        shutil.rmtree(self.directory)

    @initialize(budget=BUDGETS)
    def create(self, budget):
        create_ledger(self.path, *budget, dataset="a")
        self.budgets["a"] = budget

    @rule(name=NAMES, budget=BUDGETS)
    def add(self, name, budget):
        try:
            add_dataset(self.path, name, *budget)
        except LedgerError:
            assert name in self.budgets
        else:
            assert name not in self.budgets
            self.budgets[name] = budget

    @rule(
        target=reservations,
        name=NAMES,
        share=st.sampled_from([0, 1, 2, 3, 5, 10, 11]),
        more=st.integers(-2, 2),
        draws=st.sampled_from([0, 1, 10**18, 4 * 10**22, 2 * 10**24]),
    )
    def spend(self, name, share, more, draws):
        if name not in self.budgets:
            with pytest.raises(LedgerError, match="has no data set"):
                reserve(self.path, name, raw_charge(1))
            return None
        rho, draw_delta = (sum(part) for part in zip((0, 0), *self.spent[name], strict=True))
        epsilon, delta = self.budgets[name]
        # Fixed, whatever is charged; only a first fit may go beyond, and take everything.
        limit = int(Fraction(delta / 10) * UNITS)
        whole = capacity(epsilon, delta, limit) if draw_delta + draws <= limit else 0
        if not self.spent[name]:
            whole = max(whole, capacity(epsilon, delta, draws))
        # Tenths of the budget and a unit or two beside them: the edge is met often.
        cost = max(1, (whole - rho if share == 11 else whole * share // 10) + more)
        try:
            reservation = reserve(self.path, name, raw_charge(cost, draws))
        except BudgetError:
            assert rho + cost > whole or whole == 0
            return None
        assert rho + cost <= whole
        assert whole > 0
        self.spent[name].append((cost, draws))
        self.entries.append("reserved")
        self.costs.append((name, cost, draws))
        assert reservation.number == len(self.entries)
        return reservation

    @rule(reservation=reservations, failed=st.booleans())
    def end(self, reservation, failed):
        if reservation is None:
            return
        index = reservation.number - 1
        assert finish(reservation, failed=failed) == (self.entries[index] != "finished")
        if self.entries[index] != "finished":
            self.entries[index] = "failed" if failed else "finished"

    @rule(reservation=reservations)
    def resume(self, reservation):
        if reservation is None:
            return
        index = reservation.number - 1
        _, rho, draws = self.costs[index]
        try:
            again = reserve(self.path, None, raw_charge(rho, draws), token=reservation.token)
        except LedgerError:
            assert self.entries[index] == "finished"
        else:
            assert again == reservation
            assert self.entries[index] != "finished"

    @invariant()
    def the_file_holds_exactly_what_was_spent(self):
        if not self.budgets:
            return
        found = read_budgets(self.path)
        assert [budget.name for budget in found] == list(self.budgets)
        states = {}
        for budget in found:
            charges = [(e.charge.rho, e.charge.draw_delta) for e in budget.entries]
            assert charges == self.spent[budget.name]
            states |= {entry.number: entry.state for entry in budget.entries}
            total = epsilon_total(budget.rho, budget.draw_delta, budget.delta)
            assert total <= budget.epsilon
        assert [states[number] for number in sorted(states)] == self.entries
        assert sorted(states) == list(range(1, len(self.entries) + 1))


LedgerMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
