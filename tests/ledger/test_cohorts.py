"""Cohorts: what is declared about people changes what is said of them, and no limit."""

import sqlite3
from contextlib import closing

import pytest

from dplasso.errors import BudgetError, LedgerError
from dplasso.ledger import (
    add_dataset,
    create_ledger,
    declare_disjoint,
    epsilon_total,
    people_of,
    read_budgets,
    read_cohorts,
    reserve,
    rho_limit,
)
from ledger.workers import charge, raw_charge

MONTHS = ("january", "february", "march")


@pytest.fixture
def path(tmp_path):
    """Give a ledger of three months and of a survey, with other costs each."""
    path = tmp_path / "l"
    create_ledger(path, 1.0, 1e-6, dataset=MONTHS[0])
    for name in (*MONTHS[1:], "survey"):
        add_dataset(path, name, 1.0, 1e-6)
    for name, epsilon in zip((*MONTHS, "survey"), (0.5, 0.9, 0.7, 0.2), strict=True):
        reserve(path, name, charge(epsilon, 1e-7))
    return path


def test_the_worst_case_is_the_sum_and_a_cohort_has_its_largest(path):
    budgets, groups = read_cohorts(path)
    assert groups == ()
    before = people_of(budgets, groups)
    rho, draws = (sum(getattr(one, name) for one in budgets) for name in ("rho", "draw_delta"))
    assert before.declared == before.in_all == epsilon_total(rho, draws, 1e-6)
    declare_disjoint(path, MONTHS)
    budgets, groups = read_cohorts(path)
    people = people_of(budgets, groups)
    assert people.in_all == before.in_all
    _, february, _, survey = budgets
    rho = february.rho + survey.rho
    draws = max(one.draw_delta for one in budgets[:3]) + survey.draw_delta
    assert people.declared == epsilon_total(rho, draws, 1e-6) < people.in_all
    months = people_of(budgets[:3], groups)
    assert months.declared < people.declared
    assert months.in_all > max(epsilon_total(one.rho, one.draw_delta, 1e-6) for one in budgets[:3])


def test_relations_that_do_not_add_up_have_no_sum(path):
    add_dataset(path, "april", 2.0, 1e-5, neighbors="replace-one")
    assert people_of(*read_cohorts(path)) is None


def test_no_limit_changes(path):
    before = read_budgets(path)
    declare_disjoint(path, (*MONTHS, "survey"))
    assert read_budgets(path) == before
    for budget in before:
        rest = rho_limit(budget) - budget.rho
        with pytest.raises(BudgetError):
            reserve(path, budget.name, raw_charge(rest + 1))
        reserve(path, budget.name, raw_charge(rest))
    declare_disjoint(path, (*MONTHS, "survey"), withdraw=True)
    with pytest.raises(BudgetError):
        reserve(path, "march", raw_charge(1))


def test_a_group_grows_whole_and_is_withdrawn_whole(path):
    declare_disjoint(path, ("march", "january"))
    (group,) = read_cohorts(path)[1]
    assert group.datasets == ("january", "march")
    assert all((group.disjoint, group.user, group.host, group.declared_at))
    with pytest.raises(LedgerError, match="declaration that nobody is in two of january, march"):
        declare_disjoint(path, ("march", "february"))
    declare_disjoint(path, ("survey", "february"))
    assert len(read_cohorts(path)[1]) == 2
    with pytest.raises(LedgerError, match=r"disjoint .* january february march survey$"):
        declare_disjoint(path, ("march", "february"))
    declare_disjoint(path, ("january", "february", "march", "survey"))
    assert [one.datasets for one in read_cohorts(path)[1]] == [(*MONTHS, "survey")]
    with pytest.raises(LedgerError, match="no declaration about exactly these"):
        declare_disjoint(path, MONTHS, withdraw=True)
    declare_disjoint(path, (*MONTHS, "survey"), withdraw=True)
    assert read_cohorts(path)[1] == ()


def test_a_data_set_without_a_name_is_none_to_declare(tmp_path):
    create_ledger(tmp_path / "l", 1.0, 1e-6)
    with pytest.raises(LedgerError, match="has no name; give"):
        declare_disjoint(tmp_path / "l", ("january", "february"))
    assert read_budgets(tmp_path / "l")[0].name is None


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TRIGGER declaration_stays", "DELETE FROM declaration WHERE number = 1"),
        ("DROP TRIGGER declaration_stays", "DELETE FROM declaration WHERE number = 2"),
        *(
            ("DROP TRIGGER declaration_fixed", f"UPDATE declaration SET {one} WHERE number = 1")
            for one in (
                *("datasets = '[1, 2, 3, 4]'", "datasets = '[1, 9]'", "disjoint = 0"),
                *("user = 'somebody'", "declared_at = '2026-01-01'", "digest = ''"),
            )
        ),
        ("DROP TRIGGER declaration_fixed", "UPDATE declaration SET number = 3 WHERE number = 2"),
    ],
)
def test_what_was_declared_stays_and_an_alteration_is_noticed(path, statements):
    declare_disjoint(path, MONTHS)
    declare_disjoint(path, MONTHS, withdraw=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(statements[-1])
        for statement in statements:
            db.execute(statement)
    for use in (read_budgets, read_cohorts, lambda path: reserve(path, "march", charge(0.1))):
        with pytest.raises(LedgerError, match="is damaged"):
            use(path)
