"""A fit with checkpoints that is charged to a ledger: one charge, one model."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from checkpoint.conftest import refuse
from cli.conftest import charged_to, vertices_in
from dplasso import (
    BudgetError,
    DPFrankWolfeClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    Ledger,
    LedgerError,
    PublicEncoder,
    private_quantiles,
)
from dplasso.checkpoint import fit_with_checkpoints, read_checkpoint, resume_fit
from dplasso.checkpoint import session as checkpoint
from dplasso.errors import CheckpointError
from dplasso.ledger import (
    add_dataset,
    create_ledger,
    find,
    reserve,
)
from ledger.workers import charge, small_problem
from schemas import Bins, Schema

# Nothing is counted, so that steps cost what the ledger's workers charge.
ALONE = {"fit_intercept": False, "n_records": 100}

STEPS = 30
DATA = small_problem()


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "team.ledger"
    create_ledger(path, 3.0, 1e-5, dataset="visits")
    return str(path)


def model(ledger, dataset=None, **options):
    where = ledger if dataset is None else Ledger(ledger, dataset=dataset)
    given = {"epsilon": 2.0, "n_iter": STEPS, **ALONE, "ledger": where}
    return DPFrankWolfeClassifier(**(given | options))


def states(ledger):
    return [entry.state for entry in charged_to(ledger)]


@pytest.fixture
def begun(ledger, kept, killed):
    killed(model(ledger), DATA, kept, 11)
    assert len(vertices_in(kept)) == 10
    return kept


def test_a_fit_that_nothing_interrupts_is_charged_once(ledger, kept):
    made = fit_with_checkpoints(model(Ledger(ledger, "visits")), *DATA, kept)
    model(ledger, epsilon=0.1).fit(*DATA)
    entry, other = charged_to(ledger)
    assert entry.state == "finished"
    assert replace(entry.charge, fingerprint=None) == charge(2.0, 1e-6, STEPS)
    # A plain fit on the same people is charged for the same ones.
    assert entry.charge.fingerprint == other.charge.fingerprint is not None
    assert entry.release == made.model_.digest
    stored = read_checkpoint(kept)
    assert find(ledger, stored.token) == entry.number
    assert stored.released.digest == made.model_.digest
    assert "ledger" not in stored.params


def test_a_copy_cannot_end_in_a_second_model(ledger, begun, tmp_path):
    copy = Path(shutil.copy(begun, tmp_path / "copy"))
    first = resume_fit(model(ledger), *DATA, begun)
    content = copy.read_bytes()
    with pytest.raises(LedgerError, match="has paid for a model already"):
        resume_fit(model(ledger), *DATA, copy)
    assert copy.read_bytes() == content
    assert resume_fit(model(ledger), *DATA, begun).transcript_ == first.transcript_
    assert states(ledger) == ["finished"]


def test_other_records_are_not_fitted_at_the_charge_of_these(ledger, begun):
    X, y = DATA
    before = begun.read_bytes()
    for other in ((X, 1 - y), (X[:-1], y[:-1])):
        with pytest.raises(LedgerError, match=r"entry 1 of .* was charged for other records"):
            resume_fit(model(ledger), *other, begun)
    assert states(ledger) == ["reserved"]
    assert begun.read_bytes() == before
    # Where the key is another, fingerprints say nothing.
    Path(f"{ledger}.key").unlink()
    resume_fit(model(ledger), *DATA, begun)
    assert states(ledger) == ["finished"]


@pytest.mark.parametrize(
    ("kind", "y", "other"),
    [
        (partial(DPLinearRegression, target_bounds=(0, 1)), DATA[1] / 3, DATA[1] / 4),
        (DPLogisticRegression, np.arange(60) % 3, np.arange(60) % 3 * 2 % 3),
    ],
    ids=["targets", "three classes"],
)
def test_other_targets_are_not_fitted_at_the_charge_of_these(ledger, kept, killed, kind, y, other):
    killed(kind(1.0, ledger=ledger), (DATA[0], y), kept, 2)
    with pytest.raises(LedgerError, match="was charged for other records"):
        resume_fit(kind(1.0, ledger=ledger), DATA[0], other, kept)
    resume_fit(kind(1.0, ledger=ledger), DATA[0], y, kept)
    assert states(ledger) == ["finished"]


def test_of_two_copies_under_way_one_ends_in_a_model(ledger, begun, tmp_path, monkeypatch):
    copy = Path(shutil.copy(begun, tmp_path / "copy"))
    real, other = checkpoint.write_checkpoint, model(ledger)

    def write(held, path, **options):
        real(held, path, **options)
        if Path(path) == copy and len(held.state.get("vertex", ())) == 20:
            resume_fit(model(ledger), *DATA, begun)

    monkeypatch.setattr(checkpoint, "write_checkpoint", write)
    with pytest.raises(LedgerError, match="paid for another model since"):
        resume_fit(other, *DATA, copy, seconds=0)
    assert not hasattr(other, "coef_")
    # Complete by now, and still not what was paid for.
    assert read_checkpoint(copy).is_complete
    with pytest.raises(LedgerError, match="has paid for a model already"):
        resume_fit(other, *DATA, copy)
    assert states(ledger) == ["finished"]


class TestRefused:
    """One sentence; nothing is charged, drawn or written."""

    def test_another_ledger_or_none(self, begun, tmp_path):
        other, foreign = tmp_path / "other.ledger", tmp_path / "foreign"
        create_ledger(other, 3.0, 1e-5)
        foreign.write_text("no ledger")
        for ledger, words, error in (
            (str(other), "holds no entry of the fit", LedgerError),
            (str(tmp_path / "none"), "there is no ledger", LedgerError),
            (str(foreign), "not a dplasso ledger", LedgerError),
            (None, "with the ledger that it was charged to, and", CheckpointError),
        ):
            refuse(model(ledger), DATA, begun, words, error)
        reserve(other, None, charge(2.0, 1e-6, STEPS))
        refuse(model(str(other)), DATA, begun, "holds no entry of the fit", LedgerError)
        assert states(other) == ["reserved"]

    def test_a_ledger_for_a_fit_that_had_none(self, ledger, kept, killed):
        killed(model(None), DATA, kept, 5)
        refuse(model(ledger), DATA, kept, "a fit with the ledger none, and")
        assert charged_to(ledger) == []

    def test_another_data_set(self, ledger, begun):
        add_dataset(ledger, "referrals", 3.0, 1e-5)
        words = "charged to 'visits', not 'referrals'"
        refuse(model(Ledger(ledger, "referrals")), DATA, begun, words, LedgerError)
        resume_fit(model(Ledger(ledger, "visits")), *DATA, begun)

    def test_an_uncharged_fit_that_cannot_be_paid_any_more(self, ledger, kept, killed):
        killed(model(ledger), DATA, kept, 1)
        assert charged_to(ledger) == []
        reserve(ledger, None, charge(2.9))
        refuse(model(ledger), DATA, kept, "cannot pay", BudgetError)

    def test_a_token_that_is_none(self, begun):
        stored = read_checkpoint(begun)
        for token in ("0" * 31, "G" * 32):
            with pytest.raises(ValueError, match="ledger entry has no token"):
                replace(stored, token=token)


def test_a_checkpoint_says_nothing_new_about_the_data(ledger, tmp_path):
    """The token is random; path and data set's name stay out."""
    kept = tmp_path / "kept"
    fit_with_checkpoints(model(Ledger(ledger, "visits")), *DATA, kept)
    content = kept.read_bytes()
    for word in (b"team.ledger", b"visits", str(tmp_path).encode()):
        assert word not in content
    tokens = set()
    for name in ("a", "b"):
        fit_with_checkpoints(model(ledger, epsilon=0.1), *DATA, tmp_path / name)
        tokens.add(read_checkpoint(tmp_path / name).token)
    assert len(tokens) == 2
    assert np.unique([entry.number for entry in charged_to(ledger)]).size == 3


def test_a_resumed_fit_leaves_room_for_its_edges(kept, ledger, killed):
    """Its charge is the one that was made, and its statement the one that was kept."""
    table = pd.DataFrame({"x": np.arange(200.0) % 90, "y": np.arange(200) % 2})
    known = {"epsilon": 2.0, "ledger": ledger}
    schema = Schema((Bins("x", (1.0,)),))
    schema = private_quantiles(table, schema, {"x": (0, 100)}, **known)
    data = PublicEncoder(schema).transform(table), table["y"].to_numpy()
    own = DPLogisticRegression(**known)
    killed(own, data, kept, 6)
    made = resume_fit(own, *data, kept)
    assert made.privacy_.find("edges").numbers["mu"] == schema.edges.statement.mu
    assert states(ledger) == ["finished", "finished"]
