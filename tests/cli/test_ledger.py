"""``dplasso ledger``, and fits that are charged."""

import itertools
import re

import pytest

from cli.conftest import charged_to, done, found, new_ledger, refused, run_command, said
from dplasso import load, privacy_cost

FAST = ("--method", "frank-wolfe", "--n-iter", "5")
NUMBERS = itertools.count()


@pytest.fixture
def ledger(tmp_path):
    return new_ledger(tmp_path / "team.ledger", 3, 1e-5, "visits")


def fit(train, ledger, *more, epsilon=1):
    """Return the command of a fit that is charged."""
    if "--model" not in more:
        more += ("--model", ledger.with_name(f"model-{next(NUMBERS)}.npz"))
    settings = ("--epsilon", epsilon, *FAST)
    return ("fit", train, *settings, "--ledger", ledger, *more)


def cannot_pay(train, ledger, *words, epsilon=1):
    refused(run_command(*fit(train, ledger, epsilon=epsilon)), *words or ("cannot pay",))


def shown(ledger, *more):
    """Return what JSON says of the one data set."""
    (report,) = found("ledger", "show", ledger, *more)["datasets"]
    return report


def test_a_planned_fit_has_no_larger_delta_than_the_budget(tmp_path):
    path = tmp_path / "l"
    done("ledger", "init", path, "--epsilon", "3", "--delta", "1e-8")
    assert "uses up (delta 1e-08, " in said("ledger", "show", path)
    assert "with delta 1e-08 and " in said("ledger", "plan", path)
    assert found("ledger", "plan", path, "--delta", "1e-7")["delta"] == 1e-7
    # A fit that was made had the default one.
    done("ledger", "spend", path, "--epsilon", "0.1")
    (entry,) = found("ledger", "show", path)["datasets"][0]["entries"]
    assert entry["delta"] == 1e-6


@pytest.mark.parametrize(
    ("method", "steps", "more"),
    [
        *(("frank-wolfe", {"n_iter": n}, {}) for n in (1, 2, 300)),
        *(("frank-wolfe", {"n_iter": n}, {"fit_intercept": False, "n_records": 9}) for n in (1, 2)),
        *(("lasso", {}, {"n_features": n}) for n in (10, 250, 5_000, None)),
    ],
)
def test_a_fit_made_elsewhere_is_charged_what_it_may_have_cost(tmp_path, method, steps, more):
    path = new_ledger(tmp_path / "l", 50, 1e-5)
    options = [f"--n-iter={n}" for n in steps.values()]
    done("ledger", "spend", path, "--epsilon", 3, "--method", method, *options)
    cost = privacy_cost(3.0, method=method, **steps, **more)
    report = shown(path)
    assert report["rho_spent"] >= cost.mu**2 / 2.0
    assert report["draw_delta_spent"] >= cost.sampling_delta


def test_json_has_the_documented_keys(train, ledger):
    charged = found(*fit(train, ledger))["ledger"]
    assert set(charged) == {
        *("dataset", "epsilon", "delta", "epsilon_spent", "epsilon_left", "kind"),
        *("share_spent", "fits_left", "neighbors", "rows_per_person"),
    }
    assert (charged["dataset"], charged["epsilon"], charged["delta"]) == ("visits", 3.0, 1e-5)
    report = shown(ledger)
    assert set(report) == {
        *("dataset", "epsilon", "delta", "neighbors", "epsilon_spent", "rho_spent", "rho_left"),
        *("draw_delta_spent", "epsilon_left", "another_fit", "entries", "share_spent"),
        *("rows_per_person", "totals"),
    }
    (entry,) = report["entries"]
    assert set(entry) == {
        *("number", "state", "kind", "epsilon", "delta", "n_iter", "eps0", "rho"),
        *("draw_delta", "share"),
        *("user", "host", "process", "program", "reserved_at", "ended_at"),
        *("purpose", "prior", "release", "rows_as_in", "neighbors", "rows_per_person"),
    }
    assert report["rho_spent"] == entry["rho"]
    assert entry["share"] == pytest.approx(entry["rho"] / (entry["rho"] + report["rho_left"]))
    assert set(report["another_fit"]) == {"delta", "n_iter"}


def test_what_is_left_adds_up(train, held_out, ledger, tmp_path):
    """Shares add up to the whole budget, and the fits foretold are those that can be paid."""
    model = tmp_path / "m.npz"
    first = said(*fit(train, ledger, "--purpose", "readmission", "--model", model, epsilon=1.5))
    words = first.split("charged to 'visits': ")[1]
    spent, left = (float(word) for word in re.findall(r"([\d.]+) % (?:of|is left)", words))
    assert spent + left == 100
    # The entry and the sum.
    assert said("ledger", "show", ledger).count(f"{spent} %") == 2
    assert "(epsilon 3 at delta 1e-05, for each row)" in words
    count = int(words.split("enough for ")[1].split()[0])
    assert count >= 1
    last = [said(*fit(held_out, ledger, epsilon=1.5)) for _ in range(count)][-1]
    cannot_pay(train, ledger, epsilon=1.5)
    assert "but no other such fit" in last or "nothing is left" in last
    # What a fit prints may be handed on: which rows others had is not in it.
    assert "same rows" not in last.lower()
    told = said("ledger", "show", ledger)
    same = ", ".join(map(str, range(2, count + 2)))
    for part in (
        *("readmission", load(model).model_.digest[:12]),
        *(
            "Do not release: these fits used different rows",
            f"Same rows: fits {same}." if count > 1 else "under one name.",
        ),
    ):
        assert part in told
    # Two fits on the same rows.
    other = ledger.with_name("other.ledger")
    new_ledger(other, 3.0, 1e-5, "visits")
    for bound in (1.0, 0.5):
        done(*fit(train, other, "--feature-bound", bound))
    assert "Do not release" not in said("ledger", "show", other)


def test_plan_in_words_can_be_typed_in(train, ledger):
    words = said("ledger", "plan", ledger, "--dataset", "visits", *FAST)
    done(*fit(train, ledger, epsilon=words.split("can have epsilon ")[1].split()[0]))


def test_a_budget_for_persons(train, tmp_path):
    path, person = tmp_path / "l", "for each person with up to 5 rows"
    given = ("--epsilon", "3", "--delta", "1e-5", "--dataset", "visits", "--rows-per-person", "5")
    done("ledger", "init", path, *given)
    planned = said("ledger", "plan", path, "--fits", "2", *FAST)
    assert "with --rows-per-person 5." in planned
    epsilon = planned.split("can have epsilon ")[1].split()[0]
    made = said(*fit(train, path, "--rows-per-person", 5, epsilon=epsilon))
    assert f"(epsilon 3 at delta 1e-05, {person}) is spent" in made
    words = (f"in all {person}", "counts 25 times", "--rows-per-person 5")
    cannot_pay(train, path, *words, epsilon=epsilon)
    done("ledger", "spend", path, "--epsilon", "0.05", *FAST)
    report = shown(path)
    assert report["rows_per_person"] == 5
    assert [entry["rows_per_person"] for entry in report["entries"]] == [5, 1]
    of_row, of_person = report["totals"]
    assert (of_row["rows_per_person"], of_person["rows_per_person"]) == (1, 5)
    assert of_row["epsilon"] < of_person["epsilon"] == report["epsilon_spent"]
    fifth, whole = report["entries"][1], report["rho_spent"] + report["rho_left"]
    assert fifth["share"] == pytest.approx(25 * fifth["rho"] / whole)
    told = said("ledger", "show", path)
    assert "for each row, " in told.split("At delta 1e-05 that is epsilon ")[1]
    done("ledger", "add", path, "rows", "--epsilon", "1", "--delta", "1e-6")
    both = found("ledger", "show", path)["datasets"]
    assert [one["rows_per_person"] for one in both] == [5, 1]


def test_no_fingerprint_is_printed(train, tmp_path, monkeypatch):
    path = tmp_path / "team.ledger"
    new_ledger(path, 3.0, 1e-5, "visits")
    # A ledger that was converted from 0.2.0 has fingerprints without a key: who knows all labels
    # but one could read that one from them.
    with monkeypatch.context() as patched:
        patched.setattr("dplasso.ledger.budgets.keyed", lambda _, fingerprint: fingerprint)
        done(*fit(train, path, "--dataset", "visits"))
    model, page = tmp_path / "m.npz", tmp_path / "page.html"
    done(*fit(train, path, "--dataset", "visits", "--model", model))
    known = [entry.charge.fingerprint for entry in charged_to(path)]
    known = [one.split(":")[-1][:8] for one in known if one]
    assert len(known) == 2
    done("report", model, "--out", page, "--ledger", path)
    told = [done("ledger", "show", path, *more).stdout for more in ((), ("--json",))]
    told += [page.read_text(), model.read_bytes().decode("latin-1")]
    for text in told:
        assert len(text) > 500
        assert not any(one in text for one in known)
        assert not re.search('fingerprint( of|")', text)


def test_two_data_sets(train, tmp_path):
    # Spent and delta are never shown as less than they are.
    ledger = new_ledger(tmp_path / "l", 3.0000001, 1.00000001e-5)
    assert "without a name" in said("ledger", "show", ledger)
    done("ledger", "name", ledger, "visits")
    assert said("ledger", "show", ledger).startswith("visits: epsilon 3.00001 at delta 1.00001e-05")
    done("ledger", "add", ledger, "referrals", "--epsilon", "1", "--delta", "1e-6")
    cannot_pay(train, ledger, "'visits', 'referrals'")
    done(*fit(train, ledger, "--dataset", "referrals"))
    both = found("ledger", "show", ledger)["datasets"]
    assert [len(report["entries"]) for report in both] == [0, 1]
    assert found("ledger", "show", ledger)["person_in_all"]["epsilon"] < 1.0
    assert shown(ledger, "--dataset", "visits")["dataset"] == "visits"
