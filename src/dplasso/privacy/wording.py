"""A privacy statement in plain words, and what whoever signs for it has to know."""

import math
import warnings
from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_UP, Context
from typing import TYPE_CHECKING, Any, NamedTuple

from dplasso.errors import PrivacyLeakWarning, WeakPrivacyWarning
from dplasso.privacy.parameters import RELATIONS

if TYPE_CHECKING:
    from dplasso.privacy.statement import PrivacyStatement

FROM_SYSTEM = "operating system"
SEEDED = "seeded"
NOT_RANDOM = "none"
CLASSES_DECLARED = "declared"
CLASSES_NONE = "none"
CLASSES_FROM_Y = "taken from y, treated as public"
COUNT_UNUSED = "not used"
COUNT_PUBLIC = "given as public"
COUNT_PRIVATE = "counted privately"
COUNT_BY_CLASS = "counted privately by class"
# Beyond this nobody can picture e^epsilon.
PICTURED = 10.0
# What a reader has to know where labels alone are private.
LABELS_ALONE = (
    "Features are not protected: the rest of each row, who is in the data and how many rows there "
    "are count as public, and may show."
)
_THIS = {"score": "this score", "edges": "these edges"}
GREEN, AMBER, RED = "green", "amber", "red"
# Above these an epsilon is amber, and red.
_EPSILON = 3.0, 10.0
# The same for delta times the number of records; and red where that number is not known.
_DELTA = 0.1, 1.0
_LARGE_DELTA = 1e-3
_CLASSES_SHOWN = 20
_ONLY_LABELS = (
    "only labels are protected: the rest of each row may show in the model, so it must be public; "
    "if it is not, fit with `neighbors='add-remove'`"
)
_COLUMNS_FROM_DATA = (
    "the number of columns was taken from the data, which the guarantee does not protect: a last "
    "column that only one record has would show; declare it instead (`n_features`; --features of "
    "fit, or of convert for a store)"
)
_said = set[str]()


def rounded_up(value: float, digits: int = 4) -> str:
    """Return a privacy loss or a delta in a few digits, not less but for a part in 10^12."""
    if math.isinf(value):
        return "inf"
    # A value such as 0.1 must not be rounded up because of its last bit.
    up = Context(prec=digits, rounding=ROUND_UP).create_decimal(value * (1 - 1e-12))
    return f"{float(up):.{digits}g}"


def percent(spent: float, *, left: bool = False) -> str:
    """Return the spent share of a budget, rounded up to tenths of a percent, or the rest."""
    tenths = min(1000, math.ceil(1000 * spent - 1e-9))
    return f"{(1000 - tenths if left else tenths) / 10:.1f} %"


def rounded_down(value: float, digits: int = 6) -> str:
    """Return a few digits of a number, never more than it: an epsilon that can be asked for too."""
    shorter = Context(prec=digits, rounding=ROUND_DOWN).create_decimal(value)
    return f"{float(shorter):.{digits}g}"


def odds(epsilon: float) -> str:
    """Return e^epsilon in three digits, rounded up; in words where nobody could picture it."""
    if epsilon > PICTURED:
        return "more than 20,000"
    return f"{float(rounded_up(math.exp(epsilon), 3)):,g}"


def first_rows(rows_per_person: int) -> str:
    """Return which rows of a person enter a fit, in words."""
    return "the first row" if rows_per_person == 1 else f"the first {rows_per_person:,} rows"


def _protection(statement: "PrivacyStatement") -> str:
    """Return a paragraph on who is protected, how strongly, and who is protected less."""
    rows, by_rows = statement.rows_per_person, statement.epsilon_by_rows
    data = {"model": "training data", "score": "scored data"}.get(statement.about, "data")
    if statement.by_person:
        who = f"each person, of whom only {first_rows(rows)} entered."
        moved, others, other, labels = "all rows of any one person", "any others", "other", "labels"
        less = "It does not matter how many rows a person has."
    elif rows == 1:
        who = f"each single record (one row of the {data})."
        moved, others, other, labels = "any one record", "any other", "another", "label"
        less = "A person with several rows is protected less than a person with one."
    else:
        who = f"each person, with up to {rows:,} rows of the {data}, provided that nobody has more."
        moved, others = f"any {rows} records of one person", "any others"
        other, labels = "other", "labels"
        less = "A person with more rows is protected less."
    if not RELATIONS[statement.neighbors].hides_features:
        who = f"the {labels} of {who}"
    changed = RELATIONS[statement.neighbors].changed.format(
        others=others, labels=f"{other} {labels}"
    )
    if by_rows:
        weaker = [
            f"{rows * int(times):,} rows: "
            + ("none" if math.isinf(epsilon) else rounded_up(epsilon, 3))
            for times, epsilon in by_rows.items()
        ]
        less += f" The epsilon of a person with {', '.join(weaker)}."
    if not RELATIONS[statement.neighbors].hides_features:
        less += f" {LABELS_ALONE}"
    factor = f" = {rounded_up(math.exp(statement.epsilon))}" if statement.epsilon < 20 else ""
    return (
        f"What is protected: {who} If {moved} were {changed}, the probability of any outcome, and "
        f"so of anything anyone could conclude from the {statement.about}, would be at most "
        f"e^epsilon{factor} times as large, plus delta = {rounded_up(statement.delta)}; and the "
        "same the other way round. This holds whatever else is known about the other records. "
        f"{less}"
    )


def guarantee(statement: "PrivacyStatement") -> list[str]:
    """Return the first paragraphs: what is protected and how strongly, or why nothing is."""
    if not statement.is_private:
        return [
            "NOT differentially private: " + "; and ".join(statement.reasons) + ".",
            "Treat this model like the records it was trained on."
            if statement.about == "model"
            else f"Treat {_THIS[statement.about]} like the records that went in.",
        ]
    return [
        f"Differentially private with epsilon = {rounded_up(statement.epsilon)} and delta = "
        f"{rounded_up(statement.delta)}.",
        _protection(statement),
        f"How: {_steps(statement)}. Accounted by: "
        f"{statement.accountant}. Of delta, {statement.sampling_delta:.2g} covers the rounding of "
        "the random draws. Random numbers: a cryptographic generator keyed by the operating "
        "system.",
    ]


def _steps(statement: "PrivacyStatement") -> str:
    """Return the words for the releases and their total cost."""
    *others, last = [release.words for release in statement.releases]
    words = f"{'; '.join(others)}; and {last}" if others else last
    # Of a search only Renyi divergences are bounded, whatever its tries are.
    if statement.mechanism == "gaussian" and statement.find("search") is None:
        return f"{words} (together {rounded_up(statement.mu)}-GDP)"
    return f"{words} (together {rounded_up(statement.mu * statement.mu / 2.0)}-zCDP)"


def number_of_classes(n_classes: int) -> str:
    """Return the number of classes as a text says it."""
    return "two" if n_classes == 2 else f"{n_classes:,}"


def assumptions(statement: "PrivacyStatement") -> str:
    """Return the last paragraph: what the statement treats as public."""
    labels = f"the {number_of_classes(statement.n_classes)} class labels"
    if statement.many_labels:
        labels = f"the {number_of_classes(statement.n_classes)} labels that a record may have"
    if statement.target_bounds is not None:
        low, high = statement.target_bounds
        labels = (
            f"the interval of the targets ({low:g} to {high:g}; targets outside were clipped to it)"
        )
    if statement.classes == CLASSES_FROM_Y:
        labels += " (they were taken from the data)"
    start = ""
    if statement.prior:
        start += (
            f" The fit starts from {statement.prior}; the people behind it are not protected by "
            "this fit."
        )
    if statement.public_rows:
        named = statement.find("inference") is not None
        uses = "predicts the named columns by" if named else "uses the latent directions of"
        start += f" The fit {uses} {statement.public_rows}"
        unprotected = "; the people in these rows are not protected by this fit"
        start += f"{unprotected}." if RELATIONS[statement.neighbors].hides_features else "."
    if not statement.is_private:
        return (
            f"Settings: {statement.steps:,} steps, mechanism {statement.mechanism!r}, randomness "
            f"{statement.randomness!r}.{start}"
        )
    if statement.about == "score":
        return (
            "Taken as public, and not protected by this: the model and all settings. What the "
            "model's own training cost, and other releases from these rows, is not counted here."
        )
    if statement.about == "edges":
        return (
            "Taken as public, and not protected by this: the columns, their bounds, the grid and "
            "all settings. A fit with these edges counts their cost in its own statement; other "
            "releases from these records are not counted here."
        )
    clipped, bound = statement.number("feature_bound"), ""
    rows = "" if RELATIONS[statement.neighbors].hides_features else "the features of all rows, "
    if clipped is not None:
        bound = f"the bound on entries ({clipped:g}; larger entries were clipped to it), "
    if statement.records == COUNT_PUBLIC:
        exactly = "" if statement.find("gradients") else " (it sets how exactly gradients are kept)"
        bound += f"the number of records{exactly}, "
    counted = (
        "The choice among settings is counted here; other releases from the same records are not. "
        "Covered: the model with the noisy score that it was chosen by and "
        if statement.find("search")
        else "Settings tuned on the same records, and other releases from them, cost privacy that "
        "is not counted here. Covered: the model with "
    )
    return (
        "Taken as public, and not protected: the number and meaning of the columns, "
        f"{rows}{labels}, {bound}and all other settings. {counted}this statement; not logs, error "
        f"messages, running times or test scores.{start}"
    )


class Caution(NamedTuple):
    """Why a promise means less than it seems to.

    Attributes
    ----------
    level : {"amber", "red"}
        Amber needs an answer. Red means that the promise protects very little or nothing.
    sentence : str
        What is wrong, and what would be right.
    warning : type or None
        What a fit in Python warns with; None if it does not warn.
    once : bool
        Whether a process warns of it only once.
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
    columns_declared: bool = True,
) -> list[Caution]:
    """Return why the promise means less than it seems to, red cautions first.

    Parameters
    ----------
    n_records : float, optional
        The number of records, public or counted privately.
    draft, unconfirmed : bool, default=False
        Whether the schema is an unedited draft from the data, or one that nobody has confirmed.
    classes : sequence, optional
        The class labels, to be listed if they were taken from the data.
    columns_declared : bool, default=True
        Whether the number of columns was declared, not taken from the data.

    Returns
    -------
    list of Caution
        Why the promise means less; empty if nothing is wrong.
    """
    if not statement.is_private:
        cautions = [_not_private(statement)]
    else:
        cautions = [*_of_epsilon(statement), *_of_delta(statement.delta, n_records)]
        if not RELATIONS[statement.neighbors].hides_features:
            cautions.append(Caution(AMBER, _ONLY_LABELS))
        if statement.classes == CLASSES_FROM_Y:
            shown = ", ".join(map(repr, classes[:_CLASSES_SHOWN]))
            more = ", ..." * (len(classes) > _CLASSES_SHOWN)
            shown = f" ({shown}{more})" if shown else ""
            cautions.append(
                Caution(
                    AMBER,
                    f"the class labels were taken from the data{shown}, which the guarantee does "
                    "not protect: a label that only one record has would show; declare the "
                    "classes instead",
                    PrivacyLeakWarning,
                    once=True,
                )
            )
        if not columns_declared:
            cautions.append(Caution(AMBER, _COLUMNS_FROM_DATA))
    if draft:
        cautions.append(
            Caution(
                RED,
                "the schema is a draft that nobody has edited: its columns, categories and ranges "
                "were taken from the records without noise, and leave with the model",
            )
        )
    elif unconfirmed:
        cautions.append(
            Caution(
                AMBER,
                "the schema was drafted from the records, and nobody has confirmed that what it "
                'says is known without them: set "confirmed" to true in its file and fit again',
            )
        )
    return sorted(cautions, key=lambda caution: caution.level != RED)


def _not_private(statement: "PrivacyStatement") -> Caution:
    asked = statement.randomness == NOT_RANDOM
    reasons = "; and ".join(statement.reasons)
    warning = None if asked else PrivacyLeakWarning
    return Caution(RED, f"not differentially private, whatever epsilon says: {reasons}", warning)


def _of_epsilon(statement: "PrivacyStatement") -> list[Caution]:
    epsilon, requested, (amber, red) = statement.epsilon, statement.epsilon_requested, _EPSILON
    if epsilon > red:
        cut = f" ({requested:g} was asked for, but no more is spent)" * (requested > 1.01 * epsilon)
        sentence = (
            f"an epsilon of {rounded_up(epsilon)}{cut} promises very little: whoever has seen the "
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
    shown, (amber, red) = rounded_up(delta), _DELTA
    share = 0.0 if n_records is None else delta * n_records
    right = "" if n_records is None else f" (here at most {rounded_down(amber / n_records, 1)})"
    right = f"choose at most a tenth of one over the number of records{right}"
    if share >= red:
        sentence = (
            f"a delta of {shown} is not below one over the number of records: even publishing one "
            f"random record would keep such a promise; {right}"
        )
        return [Caution(RED, sentence, WeakPrivacyWarning)]
    if delta >= _LARGE_DELTA:
        sentence = (
            f"a delta of {shown} lets the promise fail altogether for one record in "
            f"{math.floor(1 / delta):,}; {right}"
        )
        return [Caution(RED, sentence, WeakPrivacyWarning)]
    if share > amber:
        return [Caution(AMBER, f"a delta of {shown} is large for so many records; {right}")]
    return []


def level_of(cautions: Sequence[Caution]) -> str:
    """Return the worst level: green without cautions."""
    levels = {caution.level for caution in cautions}
    return RED if RED in levels else AMBER if levels else GREEN


def warn_of(cautions: Sequence[Caution], stacklevel: int = 6) -> None:
    """Warn of the cautions that name a warning."""
    for caution in cautions:
        if caution.warning is not None:
            warn = warn_once if caution.once else warnings.warn
            warn(f"Caution: {caution.sentence}", caution.warning, stacklevel + caution.once)


def warn_once(sentence: str, warning: type[Warning], stacklevel: int) -> None:
    """Warn unless this process was warned with the same sentence."""
    if sentence not in _said:
        warnings.warn(sentence, warning, stacklevel)
        # Not where a filter turned the warning into an error.
        _said.add(sentence)
