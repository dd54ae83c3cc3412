"""Whole fits, searches and scores of neighbours: `python tests/recorded_fits.py N`.

Every case is an estimator with its options, a kind of target, and what is fitted: rows in memory,
in a store or in partitions. Its pairs are drawn at random from records that an adversary might add,
remove or exchange. Printed is how much was compared, as JSON; the exit code is 1 if anything moved
by more than its sensitivity.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from evidence.assurance.hostile import PEOPLE

from dplasso import (
    DPFrankWolfeClassifier,
    DPLassoClassifier,
    DPLogisticRegression,
    NoiseWarning,
    PrivateComparison,
    PrivateScore,
    PrivateSearch,
    WeakPrivacyWarning,
    private_comparison,
    private_score,
)
from dplasso.cluster import InProcessEngine
from dplasso.gradient_descent.energies import scale_exponents_of
from dplasso.phases import pairs
from dplasso.tuning.estimates import MANY_LABELS, NUMBERS
from dplasso.tuning.metrics import COMPARING, METRICS
from isolated_records import OWN_NUMBERS, STORAGE, Records, row
from neighbours import N_COLUMNS, N_ROWS, common_records, in_parts
from recorder import Comparison, compare
from schemas import Categories, Levels, Number, Origin, Pairs, Schema, with_origin
from small_fits import (
    BOUNDS,
    FAMILIES,
    GRADIENTS,
    LASSOS,
    LOOPS,
    N_CLASSES,
    given_to_fit,
    planned,
    prior_of,
    public_rows,
    scored_model,
    short_runs,
    targets_of,
)

RELATIONS = ("add-remove", "replace-one", "label")
IN_MEMORY = "csr", "csc", "dense"
IN_ONE_PROCESS = *IN_MEMORY, "store"
FORMS = *IN_ONE_PROCESS, "partitions"


@dataclass(frozen=True)
class Case:
    """What is run on both of two neighbours.

    `work`: called with a relation, the arguments of `fit` and its options.
    `n_classes`: 0 for numbers within `BOUNDS`.
    `many_labels`: whether a row has or has not each of so many.
    `uses`: "weights", "people" or both.
    `draws`: whether vertices are drawn; their loop takes long to compile.
    `n_rows`: records that neighbours have in common.
    `far`: whether their entries of some columns lie far from 0.
    """

    work: Callable[[str, Any, Any, dict[str, Any]], Any]
    n_classes: int = 2
    uses: tuple[str, ...] = ()
    draws: bool = False
    forms: tuple[str, ...] = FORMS
    n_rows: int = N_ROWS
    many_labels: bool = False
    far: bool = False


def _fit(family, plan, schema, options, relation, X, y, given):
    """Fit; `plan`: that of a LASSO. `schema`: what made the columns, if anything did."""
    kind, n_classes = FAMILIES[family]
    if schema is not None:
        made = partial(with_origin, origin=Origin(schema))
        X = list(map(made, X)) if isinstance(X, list) else made(X)
    if "public_rows" in options:
        options = options | {"public_rows": public_rows(N_COLUMNS)}
    if "prior" in options:
        options = options | {"prior": prior_of(options["prior"], n_classes, N_COLUMNS, 7)}
    options = {name: value for name, value in options.items() if name != "sample_weight"}
    target = {"classes": list(range(n_classes))} if n_classes else {"target_bounds": BOUNDS}
    # Pairs are looked at with as few records as here.
    with short_runs(), planned(plan), patch.object(pairs, "_SIGNAL", 1e-3):
        return kind(neighbors=relation, **(target | options)).fit(X, y, **given)


def _score(metric, kind, numbers, relation, X, y, _):
    """Score one of the models, or compare two."""
    options = {"target_bounds": BOUNDS} if kind == NUMBERS else {}
    options |= {"metric": metric, "neighbors": relation}
    scored = private_score if len(numbers) == 1 else private_comparison
    # scikit-learn's softmax of huge margins is none, and says so.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return scored(*(scored_model(kind, number) for number in numbers), X, y, 1.0, **options)


def _search(kind, grid, classes, relation, X, y, _):
    estimator = kind(neighbors=relation, classes=classes)
    search = PrivateSearch(estimator, grid, 5.0, tries=3, random_state=4)
    with warnings.catch_warnings(), short_runs():
        warnings.simplefilter("ignore")
        return search.fit(X, y)


# Of a number 2 and 4 bins on two levels, and 5 words; two variables of 6 words.
LEVELS = Schema((Levels("a", 0, 1, (2, 4)), Categories("b", (1, 2, 3))))
WORDS = Schema((Categories("a", (1, 2, 3, 4)), Categories("b", (1, 2, 3, 4))))
# 5 columns, 6 of their pair, and a number.
PAIRS = Schema(
    (
        Categories("a", (1, 2), "ignore", "ignore"),
        Categories("b", (1, 2, 3), "ignore", "ignore"),
        *(Pairs(), Number("c", 1.0, 0.0, "ignore")),
    )
)


WEIGHTED, GROUPED = {"sample_weight": True}, {"rows_per_person": 2}
DRAWN = {"max_weights": 5, "feature_bound": 1.5, "epsilon": 5.0}
PRIOR = {"prior": "plain"}
RADIUS = {"feature_bound": 1.5, "epsilon": 5.0, "n_iter": 8, "l1_radius": 20.0}
# Of one variant, and of the ways in which records are more than rows.
PLAINLY = {"": {}, ", weights": WEIGHTED, ", people": GROUPED}
NO_INTERCEPT = {", no intercept": {"fit_intercept": False}}
DIRECTIONS, SCALED = {"public_rows": True}, {"epsilon": 100.0}
INTERVALS = {"row_norm": 2.0, "infer": "all"}
BALANCED = {"class_weight": "balanced", "epsilon": 60.0}
# So many records that energies of the columns pay, and scale them; and that classes differ by more
# than the noise of their counts.
SCALED_ROWS, BALANCED_ROWS = 2800, 300


@dataclass(frozen=True)
class Group:
    """Cases of several families: each by every line of a table of options, named as the line is.

    `name`: has the name of the family in the place of braces.
    `common`: options of all of them.
    """

    families: tuple[str, ...]
    name: str
    table: dict[str, dict[str, Any]]
    common: dict[str, Any] = field(default_factory=dict)
    plan: str = "drawn"
    schema: Schema | None = None

    def cases(self) -> Iterator[tuple[str, Case]]:
        """Name the cases."""
        for family, (name, options) in product(self.families, self.table.items()):
            yield self._case(self.name.format(family) + name, family, self.common | options)

    def _case(self, name: str, family: str, options: dict[str, Any]) -> tuple[str, Case]:
        kind, n_classes = FAMILIES[family]
        uses = ("weights",) * ("sample_weight" in options)
        uses += ("people",) * ("rows_per_person" in options)
        forms, n_rows = FORMS, N_ROWS
        if self.schema is not None:
            forms = "csr", "csc", "partitions"
        elif kind is DPFrankWolfeClassifier or "public_rows" in options:
            forms = IN_ONE_PROCESS
        if uses and self.schema is None:
            forms = tuple(form for form in forms if form not in ("csc", "store"))
        if "scaled" in name:
            # Two rows of a person move energies twice as far; a refit has a part of the budget.
            n_rows = SCALED_ROWS * (2 if uses or "refit" in name else 1)
        elif "balanced" in name:
            n_rows = BALANCED_ROWS
        return name, Case(
            partial(_fit, family, self.plan, self.schema, options),
            n_classes,
            uses,
            draws="drawn" in name or kind is DPFrankWolfeClassifier,
            forms=forms,
            n_rows=n_rows,
            many_labels=family == "labels",
            far="far" in name,
        )


GROUPS = (
    Group(
        GRADIENTS,
        "{}",
        PLAINLY
        | NO_INTERCEPT
        | {
            ", short list": {"max_weights": 3},
            ", rows as they are": {"row_norm": 2.0},
            ", prior": {"prior": "huge"},
            ", prior of a short list": PRIOR | {"max_weights": 3} | WEIGHTED,
        },
    ),
    Group(
        GRADIENTS,
        "{}, scaled",
        PLAINLY
        | {
            " short list": {"max_weights": 3},
            " rows as they are": {"row_norm": 2.0},
            ", far from 0": {},
            " short list, far from 0": {"max_weights": 3},
            " people, far from 0": GROUPED,
        },
        SCALED,
    ),
    Group(
        ("logistic",), "{}, scaled prior", {" of a short list": PRIOR | {"max_weights": 3}}, SCALED
    ),
    Group(("logistic", "linear"), "{}, intervals", PLAINLY | NO_INTERCEPT, INTERVALS),
    Group(
        ("linear",),
        "{}, named columns",
        PLAINLY | NO_INTERCEPT,
        INTERVALS | DIRECTIONS | {"infer": [0, 3]},
    ),
    Group(
        (*GRADIENTS, *LASSOS),
        "{}, public rows",
        PLAINLY | {" and a short list": {"max_weights": 3}, " and a prior": {"prior": "huge"}},
        DIRECTIONS,
    ),
    Group(
        LASSOS,
        "{}",
        PLAINLY | {", prior": PRIOR, ", scaled refit": {"epsilon": 60.0, "max_weights": 4}},
    ),
    Group(
        LASSOS,
        "{}, drawn",
        PLAINLY | {", prior": {"prior": "huge"}, ", prior and weights": PRIOR | WEIGHTED},
        DRAWN,
    ),
    Group(LASSOS, "{}, scaled, far from 0", {"": {}}, SCALED),
    Group(LASSOS, "columns kept: {}", PLAINLY, plan="kept"),
    Group(LASSOS, "columns kept: {}, public rows", PLAINLY, DIRECTIONS, plan="kept"),
    Group(
        LOOPS,
        "{}",
        PLAINLY
        | {
            ", N public": {"n_records": 19},
            ", N public, no intercept": {"n_records": 19, "fit_intercept": False},
        },
        RADIUS,
    ),
    Group(
        LOOPS[:1],
        "{}",
        {
            ", class weights": {"class_weight": [1.0, 0.3], "n_iter": 5, "epsilon": 5.0},
            ", Algorithm 1": {"solver": "standard", "n_iter": 6, "l1_radius": 9.0},
        },
    ),
    Group(("logistic",), "{}, class weights", {"": {"class_weight": [0.3, 7.0]}}),
    Group(("three classes",), "{}, class weights", {"": {"class_weight": [2.0, 1e-300, 1e300]}}),
    Group(
        ("logistic", "three classes"),
        "{}, balanced",
        PLAINLY | NO_INTERCEPT | {", short list": {"max_weights": 3}, ", prior": PRIOR},
        BALANCED,
    ),
    Group(
        ("logistic", "linear"),
        "levels: {}",
        {"": {"epsilon": 0.05}, ", people": GROUPED | {"epsilon": 0.1}},
        schema=LEVELS,
    ),
    Group(("logistic", "linear"), "references: {}", {"": {}}, INTERVALS, schema=WORDS),
    Group(
        ("logistic", "three classes", "linear"),
        "pairs: {}",
        PLAINLY,
        {"epsilon": 5.0},
        schema=PAIRS,
    ),
)


def _cases() -> Iterator[tuple[str, Case]]:
    for group in GROUPS:
        yield from group.cases()
    for metric, one in METRICS.items():
        for kind in one.kinds:
            known = {"forms": IN_MEMORY, "many_labels": kind == MANY_LABELS}
            work = partial(_score, metric, kind)
            yield f"score, {metric} of {kind}", Case(partial(work, (1,)), N_CLASSES[kind], **known)
            if metric in COMPARING:
                compared = Case(partial(work, (1, 2)), N_CLASSES[kind], **known)
                yield f"comparison, {metric} of {kind}", compared
    given = DPLogisticRegression, {"max_weights": [None, 4]}
    yield "search", Case(partial(_search, *given, [0, 1]), forms=IN_MEMORY)
    case = Case(partial(_search, *given, None), 4, forms=IN_MEMORY, many_labels=True)
    yield "search of labels", case
    given = DPLassoClassifier, {"max_weights": [2, 5]}
    yield "search of a lasso", Case(partial(_search, *given, [0, 1]), forms=IN_MEMORY)


CASES = dict(_cases())


def draw_pair(rng, case, relation):
    """Draw neighbours: one record, or all of one person, more, exchanged or of other labels."""
    dtype = np.float32 if rng.integers(2) else np.float64
    n_rows = case.n_rows
    targets = partial(targets_of, case.n_classes, rng, many_labels=case.many_labels)
    # Of entries that are all 1, too: those of the one record may then be the only others.
    kind = "binary" if n_rows > N_ROWS and rng.integers(2) else "mixed"
    X, _ = common_records(kind, seed=int(rng.integers(5)), dtype=np.float64)
    X[:, :4] += [40.0, -9.0, 700.0, 40.0] if case.far else 0.0
    base = [(np.flatnonzero(row), row[row != 0.0]) for row in X]
    if rng.integers(2):
        base[::3] = [in_parts(*row) for row in base[::3]]
    y = targets(n_rows)
    if case.n_classes and not case.many_labels:
        y[: case.n_classes] = np.arange(case.n_classes)
    people = [PEOPLE[k] for k in rng.integers(0, 8, N_ROWS)]
    shared = Records(
        tuple(base[k % N_ROWS] for k in range(n_rows)),
        y,
        dtype,
        people=(*people, *(1000 + k // 2 for k in range(n_rows - N_ROWS))),
        weights=np.where(rng.random(n_rows) < 0.2, 0.0, rng.uniform(0.0, 2.0, n_rows)),
        parts=(0, N_ROWS // 2),
    )

    def own() -> Records:
        size = int(rng.integers(1, 5)) if "people" in case.uses else 1
        kinds = rng.choice(STORAGE, size), rng.choice(OWN_NUMBERS, size)
        return Records(
            tuple(row(rng, *names, dtype) for names in zip(*kinds, strict=True)),
            targets(size),
            people=(PEOPLE[8],) * size,
            weights=rng.choice([0.0, 5.0, 1e3, 1e308, 5e-324, 1.9], size),
        )

    # At the end: what is drawn for every row, in a search, is then the same for all others.
    rows = own()
    more = _joined(shared, rows)
    if relation == "label":
        return _joined(shared, replace(rows, y=targets(len(rows.y)))), more
    return (shared, more) if relation == "add-remove" else (_joined(shared, own()), more)


def _joined(one: Records, other: Records) -> Records:
    return replace(
        one,
        rows=(*one.rows, *other.rows),
        y=np.concatenate([one.y, other.y]),
        people=(*one.people, *other.people),
        weights=np.concatenate([one.weights, other.weights]),
    )


def compare_pair(case, relation, form, pair):
    """Run a case on a pair by the recorder."""
    given = {name: None for name in ("weights", "people") if name not in case.uses}

    def work(records):
        with tempfile.TemporaryDirectory() as folder:
            used = replace(records, **given)
            return case.work(relation, *given_to_fit(form, used, Path(folder), InProcessEngine()))

    return compare(work, *pair)


RELEASED = PrivateScore, PrivateComparison


def _outcome(result: Any) -> Any:
    """Return what a fit, a search or a score released, to be compared."""
    chosen = getattr(result, "best_estimator_", result)
    model = getattr(chosen, "model_", None)
    if model is None:
        return result.to_dict()["value"] if isinstance(result, RELEASED) else "a constant"
    return model.digest


@dataclass
class Found:
    """What came of many pairs.

    `spent`: the least part of what it was charged for that a fit or a score released.
    `scaled`, `centred`: models whose columns were scaled, and some of them centred.
    """

    pairs: int = 0
    statistics: int = 0
    largest: float = 0.0
    spent: float = 1.0
    violations: int = 0
    scaled: int = 0
    centred: int = 0

    def add(self, comparison: Comparison) -> tuple[str, ...]:
        """Count a pair, and return what is wrong with it."""
        wrong = comparison.violations
        if len(set(map(_outcome, comparison.results))) > 1:
            wrong += ("the same releases gave another result",)
        self.pairs += 1
        self.statistics += comparison.statistics
        self.largest = max(self.largest, comparison.largest)
        self.spent = min(self.spent, comparison.spent)
        self.violations += len(wrong)
        for result in comparison.results:
            if hasattr(result, "model_"):
                self.scaled += bool(scale_exponents_of(result.model_.released.energies).any())
            self.centred += hasattr(result, "column_center_")
        return wrong


def run(number: int, cases: dict[str, Case], seed: int = 0) -> Found:
    """Compare so many pairs of every case: all relations in turn, and forms, a case's own first."""
    found = Found()
    places = {name: place for place, name in enumerate(CASES)}
    for name, case in cases.items():
        place = places[name]
        rng = np.random.default_rng([seed, place])
        for k in range(number):
            relation, form = (
                RELATIONS[(place + k) % 3],
                case.forms[(place // 3 + k) % len(case.forms)],
            )
            pair = draw_pair(rng, case, relation)
            comparison = compare_pair(case, relation, form, pair)
            for violation in found.add(comparison)[:3]:
                print(f"{name}, {relation}, {form}, pair {k}: {violation}", file=sys.stderr)
    return found


def main(arguments: list[str]) -> int:
    """Run as a script: how many pairs a case, and perhaps "draws" or "gradients" alone."""
    number, kinds = int(arguments[0]), arguments[1:]
    wanted = {kind == "draws" for kind in kinds} or {True, False}
    chosen = {name: case for name, case in CASES.items() if case.draws in wanted}
    # Interpreted, the generator's 32-bit words wrap around as they shall, and numpy says so.
    with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        warnings.simplefilter("ignore", WeakPrivacyWarning)
        warnings.filterwarnings("ignore", ".?sample_weight.? holds weights above", UserWarning)
        found = run(number, chosen)
    print(json.dumps({"cases": len(chosen), "fits": 3 * found.pairs, **vars(found)}))
    return int(found.violations > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
