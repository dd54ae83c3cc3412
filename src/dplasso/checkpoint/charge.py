"""A fit that keeps a checkpoint and is charged to a ledger: charged once, and for one model.

The checkpoint is written with a random token before the ledger is charged under that token, and
with the entry's number before the first step. Whenever the process is killed, resuming can tell
whether the charge was made. When the fit has ended the entry keeps a digest of its release, so
that the same model can be had again and no other.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dplasso.checkpoint.format import ChargeNote, Checkpoint
from dplasso.errors import CheckpointError
from dplasso.fit.method import Method
from dplasso.ledger import (
    Reservation,
    charge_of,
    check_affordable,
    find,
    new_token,
    rejoin,
    reserve,
)
from dplasso.model.release import Release, digest_of
from dplasso.privacy.statement import Accounted


def check_charge(
    method: Method, mechanism: Accounted, stored: Checkpoint | None, path: Any
) -> ChargeNote | None:
    """Return the note of a fit that can be charged, or was before; nothing is spent."""
    note = None if stored is None else stored.charge
    if method.ledger is None:
        if note is None:
            return None
        entry = "a ledger" if note.number is None else f"entry {note.number} of a ledger"
        raise CheckpointError(
            f"{os.fspath(path)} belongs to a fit charged to {entry}: resume with that ledger "
            "(ledger)."
        )
    if stored is not None and note is None:
        raise CheckpointError(
            f"{os.fspath(path)} belongs to a fit that no ledger was charged for: resume without a "
            "ledger, or begin the fit again."
        )
    number = None if note is None else note.number or find(method.ledger, note.token)
    if stored is None or note is None or number is None:
        check_affordable(method.ledger, method.dataset, mechanism)
        return note or ChargeNote(new_token())
    _rejoin(method, mechanism, replace(note, number=number), stored.release)
    return note


def take_charge(
    method: Method,
    mechanism: Accounted,
    note: ChargeNote,
    reached: Release,
    notes: Mapping[str, str | None],
) -> Reservation:
    """Return the fit's one charge, made now, as `notes` say, or taken up where it was made."""
    if note.number is None:
        charge = charge_of(mechanism, **notes)
        return reserve(method.ledger, method.dataset, charge, token=note.token)
    return _rejoin(method, mechanism, note, reached)


def _rejoin(
    method: Method, mechanism: Accounted, note: ChargeNote, reached: Release
) -> Reservation:
    assert note.number is not None
    given = {
        "dataset": method.dataset,
        "release": digest_of(reached) if reached.complete(mechanism.n_iter) else None,
    }
    return rejoin(method.ledger, note.number, note.token, charge_of(mechanism), **given)
