"""What the command line and checkpoints add to a fit."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dplasso.fit.method import Method
from dplasso.fit.partitioned import Records
from dplasso.fit.task import Task
from dplasso.ledger import Payment
from dplasso.privacy.cautions import Caution, warn_of
from dplasso.privacy.statement import Accounted, PrivacyStatement
from dplasso.runtime.chunks import Progress


@dataclass(frozen=True)
class Begun:
    """What is known of a fit before anything private is computed.

    `records`: for what is public of them: D, the names of the columns and how they were made.
    `notes`: what the ledger's entry holds besides the cost.
    """

    method: Method
    task: Task
    mechanism: Accounted
    statement: PrivacyStatement
    records: Records
    notes: Mapping[str, str | None]


@dataclass(frozen=True)
class Session:
    """How a fit goes on from a checkpoint, keeps one, and is charged to a ledger.

    `prefix`: what was drawn already, to be taken again.
    `keep`: called after each chunk with the steps done, whether they are all, and a function that
    returns what they have released (a copy, so call it only to write it).
    `payment`: how the fit is charged, if there is a ledger.
    `marks`: steps at which what is released must be looked at.
    """

    prefix: Any = None
    keep: Callable[[int, bool, Callable[[], Any]], None] = lambda done, last, release: None  # noqa: ARG005
    payment: Payment | None = None
    marks: Collection[int] = ()


@dataclass(frozen=True)
class Hooks:
    """What a fit is given besides data and method; all of it is optional.

    `progress`: called between chunks with the steps done and T.
    `seconds`: receives the times of preparing and training; the curator's, no part of the model.
    `checkpoints`: takes a `Begun` fit, returns its `Session`.
    `copied`: called with the bytes that workers have copied from object storage, and those to be
    copied.
    `cautioned`: called with what is to be said of the promise, before the charge.
    `known_records`: the number of records, of which the curator's screen alone may speak.
    """

    progress: Progress | None = None
    seconds: dict[str, float] | None = None
    checkpoints: Callable[[Begun], Session] | None = None
    copied: Callable[[int, int], None] | None = None
    cautioned: Callable[[Sequence[Caution]], None] = warn_of
    known_records: int | None = None
