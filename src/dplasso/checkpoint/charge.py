"""A fit that keeps a checkpoint and is charged to a ledger: charged once, and for one model.

The checkpoint is written with a random token before the ledger is charged under that token, and
with the entry's number before the first step. Whenever the process is killed, resuming can tell
whether the charge was made. When the fit has ended the entry keeps a digest of its transcript, so
that the same model can be had again and no other.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dplasso.checkpoint.format import ChargeNote, Checkpoint
from dplasso.errors import CheckpointError
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
    ledger: str | os.PathLike[str] | None,
    dataset: str | None,
    mechanism: Accounted,
    stored: Checkpoint | None,
    path: Any,
) -> ChargeNote | None:
    """Return the checkpoint's note of a fit that can be charged, or was before; spend nothing.

    `stored`: what the fit is to go on from; None for a new fit.
    `path`: the checkpoint, for messages.

    Raises CheckpointError if the checkpoint was begun with a ledger and there is none now, or the
    other way round; BudgetError, LedgerError as `dplasso.ledger.check_affordable` and `rejoin`.
    """
    note = None if stored is None else stored.charge
    shown = os.fspath(path)
    if ledger is None:
        if note is not None:
            entry = "a ledger" if note.number is None else f"entry {note.number} of a ledger"
            raise CheckpointError(
                f"{shown} belongs to a fit charged to {entry}: resume with that ledger (ledger)."
            )
        return None
    if stored is None:
        check_affordable(ledger, dataset, mechanism)
        return ChargeNote(new_token())
    if note is None:
        raise CheckpointError(
            f"{shown} belongs to a fit that no ledger was charged for: resume without a ledger, or "
            "begin the fit again."
        )
    number = find(ledger, note.token) if note.number is None else note.number
    if number is None:
        check_affordable(ledger, dataset, mechanism)
    else:
        _rejoin(ledger, dataset, mechanism, replace(note, number=number), stored.release)
    return note


def take_charge(
    ledger: str | os.PathLike[str],
    dataset: str | None,
    mechanism: Accounted,
    note: ChargeNote,
    reached: Release,
    notes: Mapping[str, str | None],
) -> Reservation:
    """Return the fit's one charge, made now or taken up where it was made.

    `note`: from `check_charge`, in the checkpoint already.
    `reached`: what the checkpoint holds.
    `notes`: purpose and fingerprint of a new entry.

    Raises BudgetError, LedgerError as `dplasso.ledger.reserve` and `rejoin`.
    """
    if note.number is None:
        return reserve(ledger, dataset, charge_of(mechanism, **notes), token=note.token)
    return _rejoin(ledger, dataset, mechanism, note, reached)


def _rejoin(
    ledger: str | os.PathLike[str],
    dataset: str | None,
    mechanism: Accounted,
    note: ChargeNote,
    reached: Release,
) -> Reservation:
    assert note.number is not None
    release = digest_of(reached) if len(reached) == mechanism.n_iter else None
    charge = charge_of(mechanism)
    return rejoin(ledger, note.number, note.token, charge, dataset=dataset, release=release)
