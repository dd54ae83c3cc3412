"""What whoever signs for a fit has to be told: decided here, for page, screen and Python."""

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dplasso.errors import PrivacyLeakWarning, WeakPrivacyWarning
from dplasso.privacy.neighbouring import keeps_labels_alone
from dplasso.privacy.wording import CLASSES_FROM_Y, NOT_RANDOM, odds, rounded_down, rounded_up

if TYPE_CHECKING:
    from dplasso.privacy.statement import PrivacyStatement

GREEN, AMBER, RED = "green", "amber", "red"
# Ends what is said of the records themselves, without noise.
FOR_THE_CURATOR = "This remark comes from looking at the records: it is for you, not for release."
# Above these an epsilon is amber, and red.
_EPSILON = 3.0, 10.0
# The same for delta times the number of records; and red where that number is not known.
_DELTA = 0.1, 1.0
_LARGE_DELTA = 1e-3
_CLASSES_SHOWN = 20
_LABELS_ALONE = (
    "only labels are protected: the rest of each row may show in the model, so it must be public; "
    "if it is not, fit with `neighbors='add-remove'`"
)
_said = set[str]()


class Caution(NamedTuple):
    """Why a promise means less than it seems to.

    Attributes
    ----------
    level : {"amber", "red"}
        Amber needs an answer; red means that there is next to no promise.
    sentence : str
        What is wrong, and what would be right.
    warning : type or None
        What a fit in Python warns with; None where it does not: of a delta or an epsilon that is
        amber, and of a fit that was asked for without noise.
    once : bool
        Whether a process warns of it once, however many fits it makes.
    """

    level: str
    sentence: str
    warning: type[Warning] | None = None
    once: bool = False


def cautions_of(
    statement: "PrivacyStatement",
    n_records: float | None = None,
    *,
    draft: bool = False,
    unconfirmed: bool = False,
    classes: Sequence[Any] = (),
) -> list[Caution]:
    """Return the cautions about a promise, red ones first.

    `n_records`: the number of records as released or given, if it is known.
    `draft`: whether the columns were made by a schema that was taken from the data, and unedited.
    `unconfirmed`: whether that schema was edited, but nobody has confirmed it.
    `classes`: the class labels, as far as they are known; those not declared are listed.
    """
    if not statement.is_private:
        told = [_not_private(statement)]
    else:
        told = [*_of_epsilon(statement.epsilon), *_of_delta(statement.delta, n_records)]
        if keeps_labels_alone(statement.neighbors):
            told.append(Caution(AMBER, _LABELS_ALONE))
        if statement.classes == CLASSES_FROM_Y:
            shown = ", ".join(map(repr, classes[:_CLASSES_SHOWN]))
            more = ", ..." * (len(classes) > _CLASSES_SHOWN)
            shown = f" ({shown}{more})" if shown else ""
            told.append(
                Caution(
                    AMBER,
                    f"the class labels were taken from the data{shown}, which the guarantee does "
                    "not protect: a label that only one record has would show; declare the "
                    "classes instead",
                    PrivacyLeakWarning,
                    once=True,
                )
            )
    if draft:
        told.append(
            Caution(
                RED,
                "the schema is a draft that nobody has edited: its columns, categories and ranges "
                "were taken from the records without noise, and leave with the model",
            )
        )
    elif unconfirmed:
        told.append(
            Caution(
                AMBER,
                "the schema was drafted from the records, and nobody has confirmed that what it "
                'says is known without them: set "confirmed" to true in its file and fit again',
            )
        )
    return sorted(told, key=lambda one: one.level != RED)


def _not_private(statement: "PrivacyStatement") -> Caution:
    asked = statement.randomness == NOT_RANDOM
    reasons = "; and ".join(statement.reasons)
    warning = None if asked else PrivacyLeakWarning
    return Caution(RED, f"not differentially private, whatever epsilon says: {reasons}", warning)


def _of_epsilon(epsilon: float) -> list[Caution]:
    amber, red = _EPSILON
    if epsilon > red:
        sentence = (
            f"an epsilon of {rounded_up(epsilon)} promises very little: whoever has seen the "
            "result may be almost certain whether a given record was in the data; values up to 1 "
            "protect strongly, up to 3 reasonably"
        )
        return [Caution(RED, sentence, WeakPrivacyWarning)]
    if epsilon > amber:
        sentence = (
            f"an epsilon of {rounded_up(epsilon)} is a weak promise: the odds that a given record "
            f"was in the data may change {odds(epsilon)} times; ask why it is above {amber:g}"
        )
        return [Caution(AMBER, sentence)]
    return []


def _of_delta(delta: float, n_records: float | None) -> list[Caution]:
    told, (amber, red) = rounded_up(delta), _DELTA
    share = 0.0 if n_records is None else delta * n_records
    right = "" if n_records is None else f" (here at most {rounded_down(amber / n_records, 1)})"
    right = f"choose at most a tenth of one over the number of records{right}"
    if share >= red:
        sentence = (
            f"a delta of {told} is not below one over the number of records: even publishing one "
            f"random record would keep such a promise; {right}"
        )
        return [Caution(RED, sentence, WeakPrivacyWarning)]
    if delta >= _LARGE_DELTA:
        sentence = (
            f"a delta of {told} lets the promise fail altogether for one record in "
            f"{math.floor(1 / delta):,}; {right}"
        )
        return [Caution(RED, sentence, WeakPrivacyWarning)]
    if share > amber:
        return [Caution(AMBER, f"a delta of {told} is large for so many records; {right}")]
    return []


def level_of(cautions: Sequence[Caution]) -> str:
    """Return the worst level: green without cautions."""
    levels = {one.level for one in cautions}
    return RED if RED in levels else AMBER if levels else GREEN


def warn_of(cautions: Sequence[Caution], stacklevel: int = 6) -> None:
    """Warn of the cautions that name a warning."""
    for one in cautions:
        if one.warning is not None:
            warn = warn_once if one.once else warnings.warn
            warn(f"Caution: {one.sentence}", one.warning, stacklevel + one.once)


def warn_once(sentence: str, warning: type[Warning], stacklevel: int) -> None:
    """Warn unless this process was warned with the same sentence.

    Python's own list of what was said is emptied whenever a filter changes, as in every fit.
    """
    if sentence not in _said:
        warnings.warn(sentence, warning, stacklevel)
        # Not where a filter turned the warning into an error.
        _said.add(sentence)
