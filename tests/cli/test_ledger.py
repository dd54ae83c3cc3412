import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import refused
from cli.test_checkpoint import start, stop
from dplasso import DPLassoClassifier, load
from dplasso.checkpoint.format import ChargeNote, Checkpoint, write_checkpoint
from dplasso.checkpoint.session import _stored
from dplasso.frank_wolfe.release import VertexRelease
from dplasso.frank_wolfe.transcript import Transcript
from dplasso.ledger import create_ledger, read_budgets
from dplasso.model.release import digest_of
from dplasso.privacy.mechanisms import build_mechanism
from dplasso.privacy.statement import make_statement

FAST = ("--n-iter", "5")
NUMBERS = itertools.count()


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "team.ledger"
    create_ledger(path, 3.0, 1e-5, dataset="visits")
    return path


def fit(run, train, ledger, *more, epsilon=1):
    """Draw as many vertices as `FAST` says, which is what the ledger takes --n-iter for."""
    given = ("--epsilon", epsilon, *FAST, "--l1-radius", 10)
    if "--model" not in more:
        more += ("--model", ledger.with_name(f"model-{next(NUMBERS)}.npz"))
    return run("fit", train, *given, "--ledger", ledger, *more)


def test_the_commands_of_the_documentation(run, train, tmp_path):
    path = tmp_path / "team.ledger"
    assert run("ledger", "init", path, "--epsilon", "3", "--delta", "1e-5").exit_code == 0
    result = fit(run, train, path, "--dataset", "visits")
    assert result.exit_code == 0, result.output
    assert "charged to 'visits'" in result.stdout
    report = json.loads(fit(run, train, path, "--json", epsilon=0.5).stdout)["ledger"]
    assert set(report) == {
        *("dataset", "epsilon", "delta", "epsilon_spent", "epsilon_left"),
        *("share_spent", "fits_left", "rows_per_person"),
    }
    assert (report["dataset"], report["epsilon"], report["delta"]) == ("visits", 3.0, 1e-5)
    shown = run("ledger", "show", path, "--epsilon", "0.25", *FAST)
    assert shown.exit_code == 0
    assert "visits: epsilon 3 at delta 1e-05, add-remove, for each row" in shown.stdout
    assert shown.stdout.count("finished") == 2
    assert "by 2 fits" in shown.stdout
    assert "After a fit of epsilon 0.25:" in shown.stdout


def test_show_json_has_the_documented_keys(run, train, ledger):
    fit(run, train, ledger)
    options = ("--epsilon", "0.5", *FAST, "--json")
    document = json.loads(run("ledger", "show", ledger, *options).stdout)
    assert set(document) == {"ledger", "datasets"}
    (report,) = document["datasets"]
    assert set(report) == {
        *("dataset", "epsilon", "delta", "neighbors", "epsilon_spent", "rho_spent", "rho_left"),
        *("draw_delta_spent", "epsilon_left", "another_fit", "entries", "share_spent"),
        *("rows_per_person", "totals"),
    }
    (entry,) = report["entries"]
    assert set(entry) == {
        *("number", "state", "epsilon", "delta", "n_iter", "eps0", "rho", "draw_delta", "share"),
        *("user", "host", "process", "program", "reserved_at", "ended_at"),
        *("purpose", "release", "rows_as_in", "neighbors", "rows_per_person"),
    }
    assert report["rho_spent"] == entry["rho"]
    assert entry["share"] == pytest.approx(entry["rho"] / (entry["rho"] + report["rho_left"]))
    another = report["another_fit"]
    assert another["allowed"] is True
    assert report["epsilon_spent"] < another["epsilon_spent_after"] < 3
    assert another["epsilon_left_after"] < report["epsilon_left"]
    # What it foretells comes true.
    fit(run, train, ledger, epsilon=0.5)
    (report,) = json.loads(run("ledger", "show", ledger, *FAST, "--json").stdout)["datasets"]
    assert report["epsilon_spent"] == another["epsilon_spent_after"]
    assert report["epsilon_left"] == another["epsilon_left_after"]


def test_what_is_left_adds_up(run, train, held_out, ledger, tmp_path):
    """Shares add up to the whole budget, and the fits foretold are those that can be paid."""
    model = tmp_path / "m.npz"
    first = fit(run, train, ledger, "--purpose", "readmission", "--model", model, epsilon=1.5)
    words = first.stdout.split("charged to 'visits': ")[1].splitlines()[0]
    spent, left = (float(word) for word in re.findall(r"([\d.]+) % (?:of|is left)", words))
    assert spent + left == 100
    assert "(epsilon 3 at delta 1e-05, for each row)" in words
    count = int(words.split("enough for ")[1].split()[0])
    assert count >= 1
    for _ in range(count):
        last = fit(run, held_out, ledger, epsilon=1.5)
        assert last.exit_code == 0
    refused(fit(run, train, ledger, epsilon=1.5), "cannot pay")
    assert "but no other such fit" in last.stdout or "nothing is left" in last.stdout
    # What a fit prints may be handed on: which rows others had is not in it.
    assert "rows of fit" not in last.stdout.lower()
    shown = run("ledger", "show", ledger).stdout
    assert "readmission" in shown
    assert digest_of(load(model).model_.release)[:12] in shown
    numbers = [f"{number} as {min(number, 2)}" for number in range(1, count + 2)]
    assert "Not for release: fits on different rows" in shown
    assert f"Rows of fit {', '.join(numbers)}." in " ".join(shown.split())
    same = run("ledger", "show", two_of(ledger, run, train)).stdout
    assert "Not for release" not in same


def two_of(ledger, run, train):
    """Return another ledger, with two fits on the same rows."""
    other = ledger.with_name("other.ledger")
    create_ledger(other, 3.0, 1e-5, dataset="visits")
    for bound in (1.0, 0.5):
        assert fit(run, train, other, "--feature-bound", bound).exit_code == 0
    return other


def test_spend_notes_a_purpose(run, ledger):
    result = run("ledger", "spend", ledger, "--epsilon", "1", "--purpose", "before the ledger")
    assert "of the budget" in result.stdout
    assert read_budgets(ledger)[0].entries[0].charge.purpose == "before the ledger"
    refused(run("ledger", "spend", ledger, "--epsilon", "1", "--purpose", " "), "--purpose")


def test_plan_uses_it_up(run, train, ledger):
    planned = json.loads(run("ledger", "plan", ledger, "--fits", "3", *FAST, "--json").stdout)
    assert (planned["dataset"], planned["fits"]) == ("visits", 3)
    for _ in range(3):
        assert fit(run, train, ledger, epsilon=repr(planned["epsilon"])).exit_code == 0
    refused(fit(run, train, ledger, epsilon=0.001), "cannot pay", "epsilon 0.001")
    assert len(read_budgets(ledger)[0].entries) == 3


def test_plan_in_words_can_be_typed_in(run, train, ledger):
    words = run("ledger", "plan", ledger, "--dataset", "visits", *FAST).stdout
    assert "on 'visits'" in words
    epsilon = words.split("can have epsilon ")[1].split()[0]
    assert fit(run, train, ledger, epsilon=epsilon).exit_code == 0
    several = run("ledger", "plan", ledger, "--fits", "1000", *FAST).stdout
    assert "Each of 1,000 more fits" in several or "Nothing is left" in several
    assert run("ledger", "show", ledger, "--epsilon", "1").stdout.count("would be refused") == 1


def test_spent_and_delta_are_never_shown_as_less(run, tmp_path):
    path = tmp_path / "l"
    create_ledger(path, 3.0000001, 1.00000001e-5, dataset="visits")
    shown = run("ledger", "show", path).stdout
    assert "epsilon 3.00001 at delta 1.00001e-05" in shown


def test_a_budget_for_persons(run, train, tmp_path):
    path = tmp_path / "l"
    given = ("--epsilon", "3", "--delta", "1e-5", "--dataset", "visits", "--rows-per-person", "5")
    assert run("ledger", "init", path, *given).exit_code == 0
    planned = run("ledger", "plan", path, "--fits", "2", *FAST).stdout
    assert "with --rows-per-person 5." in planned
    epsilon = planned.split("can have epsilon ")[1].split()[0]
    made = fit(run, train, path, "--rows-per-person", 5, epsilon=epsilon)
    assert "(epsilon 3 at delta 1e-05, for each person with up to 5 rows) is spent" in made.stdout
    refused(
        fit(run, train, path, epsilon=epsilon),
        *("in all for each person with up to 5 rows", "counts 25 times", "--rows-per-person 5"),
    )
    spent = run("ledger", "spend", path, "--epsilon", "0.05", *FAST)
    assert spent.exit_code == 0
    (report,) = json.loads(run("ledger", "show", path, *FAST, "--json").stdout)["datasets"]
    assert report["rows_per_person"] == 5
    assert [entry["rows_per_person"] for entry in report["entries"]] == [5, 1]
    row, person = report["totals"]
    assert (row["rows_per_person"], person["rows_per_person"]) == (1, 5)
    assert row["epsilon"] < person["epsilon"] == report["epsilon_spent"]
    fifth = report["entries"][1]
    assert fifth["share"] == pytest.approx(
        25 * fifth["rho"] / (report["rho_spent"] + report["rho_left"])
    )
    shown = " ".join(run("ledger", "show", path, *FAST).stdout.split())
    assert (
        "visits: epsilon 3 at delta 1e-05, add-remove, for each person with up to 5 rows" in shown
    )
    assert "for each row, " in shown.split("At delta 1e-05 that is epsilon ")[1]
    assert run("ledger", "add", path, "rows", "--epsilon", "1", "--delta", "1e-6").exit_code == 0
    assert [one.rows_per_person for one in read_budgets(path)] == [5, 1]
    none = ("--rows-per-person", "0")
    for words in (
        ("init", tmp_path / "m", *given[:-2], *none),
        ("spend", path, "--dataset", "rows", "--epsilon", "0.1", *none),
        ("plan", path, "--dataset", "rows", *none),
    ):
        refused(run("ledger", *words), "--rows-per-person must be at least 1, got 0")
    assert read_budgets(path)[1].entries == ()


def test_no_fingerprint_is_printed(run, train, tmp_path):
    """Those of 0.2.0 had no key: who knows all labels but one could read that one from them."""
    path = tmp_path / "version_0.2.0.ledger"
    held = Path(__file__).parents[1] / "ledger" / "version_0.2.0.ledger"
    path.write_bytes(held.read_bytes())
    model = tmp_path / "m.npz"
    assert fit(run, train, path, "--dataset", "visits", "--model", model).exit_code == 0
    known = [e.charge.fingerprint for budget in read_budgets(path) for e in budget.entries]
    known = [one.split(":")[-1][:8] for one in known if one]
    assert len(known) == 4
    page = tmp_path / "page.html"
    assert run("report", model, "--out", page, "--ledger", path).exit_code == 0
    assert "readmission" not in page.read_text()
    told = [run("ledger", "show", path, *more).stdout for more in ((), ("--json",))]
    told += [page.read_text(), model.read_bytes().decode("latin-1")]
    for text in told:
        assert len(text) > 500
        assert not any(one in text for one in known)
        assert not re.search('fingerprint( of|")', text)


def test_two_data_sets(run, train, ledger):
    added = run("ledger", "add", ledger, "referrals", "--epsilon", "1", "--delta", "1e-6")
    assert added.exit_code == 0
    refused(fit(run, train, ledger), "'visits', 'referrals'")
    assert fit(run, train, ledger, "--dataset", "referrals").exit_code == 0
    document = json.loads(run("ledger", "show", ledger, "--json").stdout)
    assert [len(report["entries"]) for report in document["datasets"]] == [0, 1]
    one = json.loads(run("ledger", "show", ledger, "--dataset", "visits", "--json").stdout)
    assert [report["dataset"] for report in one["datasets"]] == ["visits"]


def test_naming(run, tmp_path):
    path = tmp_path / "l"
    run("ledger", "init", path, "--epsilon", "1", "--delta", "1e-5")
    assert "without a name" in run("ledger", "show", path).stdout
    assert run("ledger", "name", path, "visits").exit_code == 0
    refused(run("ledger", "name", path, "other"), "names do not change")


def test_spend_is_what_a_fit_would_have_spent(run, train, ledger, tmp_path):
    other = tmp_path / "other"
    create_ledger(other, 3.0, 1e-5)
    fit(run, train, other)
    result = run("ledger", "spend", ledger, "--epsilon", "1", *FAST)
    assert result.exit_code == 0
    assert "charged to 'visits'" in result.stdout
    assert read_budgets(ledger)[0].rho == read_budgets(other)[0].rho
    refused(run("ledger", "spend", ledger, "--epsilon", "inf"), "not private")
    refused(run("ledger", "spend", ledger, "--epsilon", "9"), "cannot pay")


def test_killed_and_resumed_it_is_charged_once(run, train, ledger, tmp_path):
    kept, model = tmp_path / "kept", tmp_path / "model.npz"
    steps = 6000
    settings = ["--epsilon", 2.5, "--delta", "0.000009", "--n-iter", steps, "--solver", "standard"]
    settings += ["--l1-radius", 10]
    options = [*settings, "--ledger", ledger, "--checkpoint", kept, "--checkpoint-seconds", 0]
    options += ["--model", model]
    taken, _ = stop(start(train, *options), kept, 0)
    assert 0 < len(taken) < steps
    assert [entry.state for entry in read_budgets(ledger)[0].entries] == ["reserved"]
    # Nothing is left for another, and it has been paid for.
    refused(run("fit", train, *options, "--force"), "cannot pay")
    refused(run("fit", train, *settings, "--checkpoint", kept, "--resume"), "entry 1")
    result = run("fit", train, *options, "--resume", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["ledger"]["epsilon_spent"] <= 3
    assert [entry.state for entry in read_budgets(ledger)[0].entries] == ["finished"]
    again = load(model).transcript_
    assert again.vertex[: len(taken)].tolist() == taken.vertex.tolist()


def test_a_resumed_fit_names_its_own_ledger(run, train, ledger, tmp_path, no_training):
    kept, other = tmp_path / "kept", tmp_path / "other.ledger"
    create_ledger(other, 3.0, 1e-5)
    missing = train.parent / "missing.svm"
    stored = Checkpoint(
        _stored(DPLassoClassifier(1.0, l1_radius=10.0, n_iter=5).get_params(deep=False)),
        VertexRelease(Transcript(np.zeros(1, np.int64), np.ones(1, np.int8)), 3, 10.0, 1.0),
        make_statement(
            build_mechanism(epsilon=1.0, delta=1e-6, n_iter=5),
            seeded=False,
            classes_declared=False,
        ),
        np.array([0, 1]),
        3,
        charge=ChargeNote("0" * 32, 1),
    )
    write_checkpoint(stored, kept)
    resumed = ("--checkpoint", kept, "--resume")
    # There is no such data: nothing tries to read it.
    refused(fit(run, missing, other, *resumed), "holds no entry 1", str(other))
    refused(fit(run, missing, tmp_path / "none", *resumed), "there is no ledger")
    assert read_budgets(other)[0].entries == ()
