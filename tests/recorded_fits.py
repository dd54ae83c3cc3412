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
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from evidence.assurance.hostile import FLOATS, PEOPLE, SINGLES
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from dplasso import (
    DPFrankWolfeClassifier,
    DPLasso,
    DPLassoClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    NoiseWarning,
    PrivateComparison,
    PrivateScore,
    PrivateSearch,
    WeakPrivacyWarning,
    private_comparison,
    private_score,
    write_store,
)
from dplasso.cluster import InProcessEngine
from dplasso.fit import lasso
from dplasso.gradient_descent import calibration, schedule
from dplasso.gradient_descent.energies import scale_exponents_of
from dplasso.matrix.compressed import canonical
from dplasso.model.linear import MatchedPrior
from dplasso.phases import pairs
from dplasso.tuning.estimates import MANY_LABELS, NUMBERS, SEVERAL_CLASSES, TWO_CLASSES
from dplasso.tuning.metrics import COMPARING, METRICS
from isolated_records import Records, matrix
from neighbours import N_COLUMNS, N_ROWS, common_records, hostile_records, in_parts
from recorder import Comparison, compare
from schemas import Categories, Levels, Number, Origin, Pairs, Schema, with_origin

RELATIONS = ("add-remove", "replace-one", "label")
BOUNDS = (-1.0, 3.0)


def _in_store(X: sp.csr_array, y: NDArray[Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        # A store has one label for each row; a matrix of them is given besides.
        store = write_store(Path(folder) / "records", X, y.reshape(len(y), -1)[:, 0])
    # What is mapped stays readable.
    return store.X


def _dense(X: sp.csr_array) -> NDArray[Any]:
    return canonical(X).toarray()


def _halves(X: Any) -> list[Any]:
    return [X[: N_ROWS // 2], X[N_ROWS // 2 :]]


# What a fit is given, from a matrix and labels: X, y, and whether other arguments come in halves.
FORMS: dict[str, Callable[[sp.csr_array, NDArray[Any]], tuple[Any, Any]]] = {
    "csr": lambda X, y: (X, y),
    "csc": lambda X, y: (X.tocsc(), y),
    "dense": lambda X, y: (_dense(X), y),
    "store": lambda X, y: (_in_store(X, y), y),
    "partitions": lambda X, y: (_halves(X), _halves(y)),
}


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
    forms: tuple[str, ...] = tuple(FORMS)
    n_rows: int = N_ROWS
    many_labels: bool = False
    far: bool = False


def _public(sizes: str, n_classes: int) -> Any:
    """Return a public model to start from, its weights of any size or of a common one."""
    rng, shape = np.random.default_rng(7), (n_classes if n_classes > 2 else 1, N_COLUMNS)
    weights = rng.normal(0.0, 2.0, shape)
    if sizes == "hostile":
        weights = rng.choice([1e300, -1e308, 5e-324, 0.0, -3.0, 1e9], shape)
    return MatchedPrior(weights, rng.normal(size=shape[0]), sizes)


def _public_rows() -> NDArray[Any]:
    """Return rows that nobody protects, some of them longer than all others."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(60, 3)) @ rng.normal(size=(3, N_COLUMNS))
    rows[rng.random(rows.shape) < 0.5] = 0.0
    return rows * 10.0 ** rng.integers(-3, 4, (60, 1))


def _fit(kind, n_classes, options, relation, X, y, given):
    if "public_rows" in options:
        options = options | {"public_rows": _public_rows()}
    if "prior" in options:
        options = options | {"prior": _public(options["prior"], n_classes)}
    options = {name: value for name, value in options.items() if name != "sample_weight"}
    target = {"classes": list(range(n_classes))} if n_classes else {"target_bounds": BOUNDS}
    # A LASSO takes rows for long, so that it draws; `_kept` has other sizes.
    longer = 1e-3 if lasso.MOST_COLUMNS > N_COLUMNS else lasso._LONGER_ROWS
    with short_runs(), patch.multiple(lasso, _LONGER_ROWS=longer, TABLE_COLUMNS=0):
        return kind(neighbors=relation, **(target | options)).fit(X, y, **given)


@contextmanager
def short_runs():
    """Give a context in which runs of gradients have few steps."""
    few = {"FEWEST_STEPS": 8, "MOST_STEPS": 12}
    few |= dict.fromkeys(("RANKING_STEPS", "SELECTING_STEPS", "REFIT_STEPS"), 4)
    with patch.multiple(schedule, **few), patch.object(calibration, "CALIBRATION_STEPS", 6):
        yield


def _score(metric, kind, sizes, relation, X, y, _):
    """Score a model, or compare two."""
    options = {"target_bounds": BOUNDS} if kind == NUMBERS else {}
    options |= {"metric": metric, "neighbors": relation}
    scored = private_score if len(sizes) == 1 else private_comparison
    # scikit-learn's softmax of huge margins is none, and says so.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return scored(*(_public_model(kind, size) for size in sizes), X, y, 1.0, **options)


# Classes or labels of every kind of target that there are scores of.
SCORED = {NUMBERS: 0, TWO_CLASSES: 2, SEVERAL_CLASSES: 3, MANY_LABELS: 4}


@cache
def _public_model(kind, size):
    X, y = common_records(seed=9)
    if kind == MANY_LABELS:
        y = np.random.default_rng(3).integers(0, 2, (len(X), 4))
        return OneVsRestClassifier(LogisticRegression(C=size)).fit(X, y)
    if kind == SEVERAL_CLASSES:
        y = np.arange(len(X)) % 3
    return (Ridge(1.0 / size) if kind == NUMBERS else LogisticRegression(C=size)).fit(X, y)


def _search(kind, grid, classes, relation, X, y, _):
    estimator = kind(neighbors=relation, classes=classes)
    search = PrivateSearch(estimator, grid, 5.0, tries=3, random_state=4)
    with warnings.catch_warnings(), short_runs():
        warnings.simplefilter("ignore")
        return search.fit(X, y)


def _kept(kind, n_classes, options, *given):
    """Fit where gradients keep columns: by as few columns as here."""
    small = {"MOST_COLUMNS": 2, "_STRENGTH": 2.0}
    with patch.multiple(lasso, **small):
        return _fit(kind, n_classes, {"epsilon": 5.0} | options, *given)


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


def _of_pairs(*given):
    """Fit where pairs are looked at with as few records as here."""
    with patch.object(pairs, "_SIGNAL", 1e-3):
        return _of_schema(PAIRS, *given)


def _of_schema(schema, kind, n_classes, options, relation, X, y, given):
    """Fit columns that a schema made."""
    origin = Origin(schema)
    given_so = (
        [with_origin(part, origin) for part in X] if isinstance(X, list) else with_origin(X, origin)
    )
    return _fit(kind, n_classes, options, relation, given_so, y, given)


WEIGHTED, GROUPED = {"sample_weight": True}, {"rows_per_person": 2}
DRAWN = {"max_weights": 5, "feature_bound": 1.5, "epsilon": 5.0}
RADIUS = {"feature_bound": 1.5, "epsilon": 5.0, "n_iter": 8, "l1_radius": 20.0}
# What the cases of a family are called, and their options.
GRADIENTS = {
    "": {},
    ", short list": {"max_weights": 3},
    ", rows as they are": {"row_norm": 2.0},
    ", no intercept": {"fit_intercept": False},
    ", weights": WEIGHTED,
    ", people": GROUPED,
    ", prior": {"prior": "hostile"},
    ", prior of a short list": {"prior": "plain", "max_weights": 3} | WEIGHTED,
}
# Of two classes, and of numbers.
INTERVALS = {"row_norm": 2.0, "infer": "all"}
WITH_INTERVALS = {
    "": {},
    ", no intercept": {"fit_intercept": False},
    ", weights": WEIGHTED,
    ", people": GROUPED,
}
DIRECTIONS = {"public_rows": True}
# Of numbers, of rows in one process.
NAMED = DIRECTIONS | INTERVALS | {"infer": [0, 3]}
# Of rows in one process.
WITH_DIRECTIONS = {
    "": DIRECTIONS,
    " and a short list": DIRECTIONS | {"max_weights": 3},
    " and a prior": DIRECTIONS | {"prior": "hostile"},
    " and weights": DIRECTIONS | WEIGHTED,
    " and people": DIRECTIONS | GROUPED,
}
# Fits of so many records and so much budget that energies of the columns pay, and scale them.
SCALED_ROWS, SCALED = 2800, {"epsilon": 100.0}
SCALED_GRADIENTS = {
    ", scaled": SCALED,
    ", scaled short list": {"max_weights": 3} | SCALED,
    ", scaled rows as they are": {"row_norm": 2.0} | SCALED,
    ", scaled weights": WEIGHTED | SCALED,
    ", scaled people": GROUPED | SCALED,
    ", scaled, far from 0": SCALED,
    ", scaled short list, far from 0": {"max_weights": 3} | SCALED,
    ", scaled people, far from 0": GROUPED | SCALED,
}
# So many records that their classes differ by more than the noise of their counts.
BALANCED_ROWS = 300
BALANCED = {
    "": {},
    ", short list": {"max_weights": 3},
    ", no intercept": {"fit_intercept": False},
    ", weights": WEIGHTED,
    ", people": GROUPED,
    ", prior": {"prior": "plain"},
}
VERTICES = {
    "": {},
    ", weights": WEIGHTED,
    ", people": GROUPED,
    ", drawn": DRAWN,
    ", drawn with weights": WEIGHTED | DRAWN,
    ", drawn of people": GROUPED | DRAWN,
    ", prior": {"prior": "plain"},
    ", prior, drawn": {"prior": "hostile"} | DRAWN,
    ", prior, drawn with weights": {"prior": "plain"} | WEIGHTED | DRAWN,
}
SCALED_VERTICES = {
    ", scaled refit": {"epsilon": 60.0, "max_weights": 4},
    ", scaled, far from 0": SCALED,
}
LOOPS = {
    "": RADIUS,
    ", weights": WEIGHTED | RADIUS,
    ", people": GROUPED | RADIUS,
    ", N public": {"n_records": 19} | RADIUS,
    ", N public, no intercept": {"n_records": 19, "fit_intercept": False} | RADIUS,
}
ESTIMATORS = {
    "logistic": (DPLogisticRegression, 2, GRADIENTS),
    "three classes": (DPLogisticRegression, 3, GRADIENTS),
    "labels": (DPLogisticRegression, 4, GRADIENTS),
    "linear": (DPLinearRegression, 0, GRADIENTS),
    "lasso": (DPLassoClassifier, 2, VERTICES),
    "lasso, three classes": (DPLassoClassifier, 3, VERTICES),
    "lasso, numbers": (DPLasso, 0, VERTICES),
    "frank-wolfe": (DPFrankWolfeClassifier, 2, LOOPS),
    "frank-wolfe, three classes": (DPFrankWolfeClassifier, 3, LOOPS),
}


SCALED_ALSO = {DPLogisticRegression: SCALED_GRADIENTS, DPLinearRegression: SCALED_GRADIENTS}
SCALED_ALSO |= {DPLassoClassifier: SCALED_VERTICES, DPLasso: SCALED_VERTICES}
# Of one variant, and of the ways in which records are more than rows.
PLAINLY = {"": {}, ", weights": WEIGHTED, ", people": GROUPED}
IN_MEMORY = "csr", "csc", "dense"
IN_ONE_PROCESS = *IN_MEMORY, "store"


def case_of(work, n_classes, options, forms=tuple(FORMS), used=None, **given):
    """Return the case of a fit by options, which say whether it uses weights or people.

    `used`: the forms where it does; None for those that `forms` has of csr, dense and partitions.
    """
    uses = ("weights",) * ("sample_weight" in options)
    uses += ("people",) * ("rows_per_person" in options)
    if uses:
        forms = used or [form for form in ("csr", "dense", "partitions") if form in forms]
    return Case(partial(*work, options), n_classes, uses, forms=tuple(forms), **given)


def _cases():
    for family, (kind, classes, table) in ESTIMATORS.items():
        known = {"many_labels": family == "labels"}
        known |= {"forms": IN_ONE_PROCESS} if kind is DPFrankWolfeClassifier else {}
        for name, options in table.items():
            case = case_of((_fit, kind, classes), classes, options, **known)
            yield f"{family}{name}", replace(case, draws="epsilon" in options)
        for name, options in SCALED_ALSO.get(kind, {}).items():
            case = case_of((_fit, kind, classes), classes, options, **known)
            # Two rows of a person move energies twice as far; a refit has a part of the budget.
            n_rows = SCALED_ROWS * (2 if case.uses or "refit" in name else 1)
            yield f"{family}{name}", replace(case, n_rows=n_rows, far="far" in name)
    for family in ("logistic", "linear"):
        kind, classes, _ = ESTIMATORS[family]
        for name, options in WITH_INTERVALS.items():
            case = case_of((_fit, kind, classes), classes, options | INTERVALS)
            yield f"{family}, intervals{name}", case
    lassos = ("lasso", "lasso, three classes", "lasso, numbers")
    for family in ("logistic", "three classes", "labels", "linear", *lassos):
        kind, classes, _ = ESTIMATORS[family]
        for name, options in WITH_DIRECTIONS.items():
            case = case_of((_fit, kind, classes), classes, options, IN_ONE_PROCESS)
            yield f"{family}, public rows{name}", replace(case, many_labels=family == "labels")
    for name, options in WITH_INTERVALS.items():
        case = case_of((_fit, DPLinearRegression, 0), 0, options | NAMED, IN_ONE_PROCESS)
        yield f"linear, named columns{name}", case
    own = {"prior": "plain", "max_weights": 3} | SCALED
    case = case_of((_fit, DPLogisticRegression, 2), 2, own, n_rows=SCALED_ROWS)
    yield "logistic, scaled prior of a short list", case
    for kind, classes in ((DPLassoClassifier, 2), (DPLassoClassifier, 3), (DPLasso, 0)):
        for name, options in PLAINLY.items():
            few, work = ("csr", "dense"), (_kept, kind, classes)
            family = f"lasso of {classes} classes that keeps columns"
            forms = few if classes == 3 else tuple(FORMS)
            yield f"{family}{name}", case_of(work, classes, options, forms, few)
            yield f"{family}, public rows{name}", case_of(work, classes, options | DIRECTIONS, few)
    for kind, classes in ((DPLogisticRegression, 2), (DPLinearRegression, 0)):
        forms = "csr", "csc"
        for name, options in (("", {"epsilon": 0.05}), (", people", GROUPED | {"epsilon": 0.1})):
            case = case_of((_of_schema, LEVELS, kind, classes), classes, options, forms, forms)
            yield f"levels of {classes} classes{name}", case
        case = case_of((_of_schema, WORDS, kind, classes), classes, INTERVALS, forms)
        yield f"references of {classes} classes", case
    own = {"class_weight": [1.0, 0.3], "n_iter": 5, "epsilon": 5.0}
    case = case_of((_fit, DPFrankWolfeClassifier, 2), 2, own, IN_MEMORY, draws=True)
    yield "frank-wolfe, class weights", case
    for family, own in (("logistic", [0.3, 7.0]), ("three classes", [2.0, 1e-300, 1e300])):
        kind, classes, _ = ESTIMATORS[family]
        work = _fit, kind, classes
        yield f"{family}, class weights", case_of(work, classes, {"class_weight": own})
        for name, options in BALANCED.items():
            options = {"class_weight": "balanced", "epsilon": 60.0} | options
            yield f"{family}, balanced{name}", case_of(work, classes, options, n_rows=BALANCED_ROWS)
    own = {"solver": "standard", "n_iter": 6, "l1_radius": 9.0}
    case = case_of((_fit, DPFrankWolfeClassifier, 2), 2, own, IN_MEMORY, draws=True)
    yield "frank-wolfe, Algorithm 1", case
    for metric, one in METRICS.items():
        for kind in one.kinds:
            work, many = partial(_score, metric, kind, (1.0,)), kind == MANY_LABELS
            case = Case(work, SCORED[kind], forms=IN_MEMORY, many_labels=many)
            yield f"score, {metric} of {kind}", case
            if metric in COMPARING:
                work = partial(_score, metric, kind, (1.0, 0.01))
                yield f"comparison, {metric} of {kind}", replace(case, work=work)
    given = DPLogisticRegression, {"max_weights": [None, 4]}
    yield "search", Case(partial(_search, *given, [0, 1]), forms=IN_MEMORY)
    case = Case(partial(_search, *given, None), 4, forms=IN_MEMORY, many_labels=True)
    yield "search of labels", case
    given = DPLassoClassifier, {"max_weights": [2, 5]}
    yield "search of a lasso", Case(partial(_search, *given, [0, 1]), forms=IN_MEMORY)
    targets = ((DPLogisticRegression, 2), (DPLogisticRegression, 3), (DPLinearRegression, 0))
    for (kind, classes), (name, options) in product(targets, PLAINLY.items()):
        options, forms = {"epsilon": 5.0} | options, ("csr", "csc", "partitions")
        case = case_of((_of_pairs, kind, classes), classes, options, forms, forms[:2])
        yield f"pairs of {classes} classes{name}", case


CASES = dict(_cases())


def _hostile_row(rng: np.random.Generator, dtype: Any) -> tuple[Any, Any]:
    """Return the columns and entries of a record that somebody might choose."""
    numbers = FLOATS if dtype == np.float64 else SINGLES
    known = list(hostile_records(dtype).values())
    kind = rng.integers(4)
    if kind == 0:
        entries = known[rng.integers(len(known))]
        columns = np.flatnonzero(entries)
        return columns.astype(np.int32), entries[columns]
    size = int(rng.integers(0, 2 * N_COLUMNS)) if kind > 1 else int(rng.integers(1, 3))
    # Columns more than once, in any order: their entries are added up, whatever they come to.
    columns = rng.integers(0, N_COLUMNS, size).astype(np.int32)
    if rng.integers(2):
        columns.sort()
    if kind == 3:
        return columns, np.full(size, rng.choice(numbers))
    return columns, rng.choice(numbers, size)


def _targets(rng: np.random.Generator, case: Case, size: int) -> NDArray[Any]:
    if case.many_labels:
        return rng.integers(0, 2, (size, case.n_classes))
    if case.n_classes:
        return rng.integers(0, case.n_classes, size)
    return np.where(rng.random(size) < 0.5, rng.uniform(-2.0, 4.0, size), rng.choice(FLOATS, size))


def draw_pair(rng, case, relation, *, single=False):
    """Draw neighbours: one record, or all of one person, more, exchanged or of other labels."""
    dtype = np.float32 if single else np.float64
    n_rows = case.n_rows
    # Of entries that are all 1, too: those of the one record may then be the only others.
    kind = "binary" if n_rows > N_ROWS and rng.integers(2) else "mixed"
    X, _ = common_records(kind, seed=int(rng.integers(5)), dtype=np.float64)
    X[:, :4] += [40.0, -9.0, 700.0, 40.0] if case.far else 0.0
    base = [(np.flatnonzero(row).astype(np.int32), row[row != 0.0]) for row in X]
    if rng.integers(2):
        base[::3] = [in_parts(*row) for row in base[::3]]
    y = _targets(rng, case, n_rows)
    if case.n_classes and not case.many_labels:
        y[: case.n_classes] = np.arange(case.n_classes)
    people = [PEOPLE[k] for k in rng.integers(0, 8, N_ROWS)]
    shared = Records(
        tuple(base[k % N_ROWS] for k in range(n_rows)),
        y,
        people=people + [1000 + k // 2 for k in range(n_rows - N_ROWS)],
        weights=np.where(rng.random(n_rows) < 0.2, 0.0, rng.uniform(0.0, 2.0, n_rows)),
    )

    def own() -> Records:
        size = int(rng.integers(1, 5)) if "people" in case.uses else 1
        return Records(
            tuple(_hostile_row(rng, dtype) for _ in range(size)),
            _targets(rng, case, size),
            people=[PEOPLE[8]] * size,
            weights=rng.choice([0.0, 5.0, 1e3, 1e308, 5e-324, 1.9], size),
        )

    # At the end: what is drawn for every row, in a search, is then the same for all others.
    rows = own()
    more = _joined(shared, rows)
    if relation == "label":
        other = replace(rows, y=_targets(rng, case, len(rows.y)))
        return _joined(shared, other), more
    return (shared, more) if relation == "add-remove" else (_joined(shared, own()), more)


def _joined(one: Records, other: Records) -> Records:
    return Records(
        (*one.rows, *other.rows),
        np.concatenate([one.y, other.y]),
        people=one.people + other.people,
        weights=np.concatenate([one.weights, other.weights]),
    )


def compare_pair(case, relation, form, pair, *, single=False):
    """Run a case on a pair by the recorder."""

    def work(records):
        dtype = np.float32 if single else np.float64
        X, y = FORMS[form](matrix(replace(records, dtype=dtype)), records.y)
        given = {}
        if "weights" in case.uses:
            given["sample_weight"] = records.weights
        if "people" in case.uses:
            given["groups"] = records.people
        if form == "partitions":
            given = {name: _halves(some) for name, some in given.items()}
            if "people" in case.uses:
                # Of each part by itself: signed numbers in one, unsigned ones in the other.
                halves = _halves(records.people)
                kinds = [np.uint64 if max(half) >= 2**63 else np.int64 for half in halves]
                given["groups"] = list(map(np.array, halves, kinds))
            given["engine"] = InProcessEngine()
        return case.work(relation, X, y, given)

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
            single = bool(rng.integers(2))
            pair = draw_pair(rng, case, relation, single=single)
            comparison = compare_pair(case, relation, form, pair, single=single)
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
